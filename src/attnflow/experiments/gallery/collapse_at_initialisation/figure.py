def draw(parameters, data):
    """x."""
