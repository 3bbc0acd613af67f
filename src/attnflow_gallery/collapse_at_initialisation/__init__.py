"""In high dimension n tokens collapse at initialisation at depth tau = ln(n + 1), and later the colder attention is.

From orthonormal tokens all pairs of a random network keep nearly one overlap gamma, which follows an ODE in the depth
tau = eta^2 L/H (arXiv:2604.01978 for d -> inf): in a high dimension d the context n and the logit scale b decide how
fast tokens collapse. In a lower dimension networks differ more, and their mean overlap passes 1/2 later.

Shown: mean overlaps of exact layers at d = d_k = 4096, with the bias of the steps removed, against the ODE at this d;
depths at which the mean overlap passes 1/2, which without logits (b = 0) are ln(n + 1) + c_n/d + O(1/d^2), and the
constant c_n (4.86 for n = 4); the first layer, whose overlap is eta^2/(H n) at every temperature; differences between
networks, which at b = 0 are d^(-1/2) times a number that we compute. Layers act on Gram matrices, which is exact in
distribution for every d.

Not shown: low dimensions, where 1/d is no small correction (on the circle two tokens collapse with probability 1/2
only, see clustering-mitigated); tokens that start with different overlaps, trained weights, layer norms and MLPs; key
dimensions of order b^4, where the weights of softmax change; hardmax. The ODE at finite d, the closed forms at b = 0
and the number for the differences are ours. Of the paper we could read the abstract and a third-party transcription of
its statements.
"""

from attnflow.experiments import from_files

PAPERS = ("koubbi2026homogenized",)
__getattr__ = from_files(__name__)
