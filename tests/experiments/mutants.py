"""The mutations of an experiment, by name."""


def mutation(module, name):
    """The mutation `name` of an experiment."""
    (found,) = [one for one in module.MUTATIONS if one.name == name]
    return found
