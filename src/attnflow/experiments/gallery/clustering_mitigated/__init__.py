"""x"""

from attnflow.experiments.gallery.clustering_mitigated.compare import claims
from attnflow.experiments.gallery.clustering_mitigated.mutations import MUTATIONS
from attnflow.experiments.gallery.clustering_mitigated.simulate import QUICK, Parameters, run
