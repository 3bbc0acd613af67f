"""On the line, without layer norm, every row of the attention matrix but at most one becomes a single 1.

Tokens on the line follow dx_i/dt = sum_j A_ij V x_j with A the softmax of QK x_i x_j, V > 0 and QK > 0, and grow like
e^(Vt). In the end a token attends to the outermost token on its own side of 0 alone. Sorted by position, the rows of A
are (1, 0, ..., 0), then at most one that may be anything, then (0, ..., 0, 1) (arXiv:2305.05465). The gaps D between
tokens that follow one leader freeze while x grows, so the other weights, e^(-QK x_i D), vanish doubly exponentially.

The row that may be anything belongs to a token that stays at 0. Tokens at -a, 0 and a are exactly soluble: u = QK x^2
obeys du/dt = 2 V u sinh u/(cosh u + kappa), kappa the mass at 0 over that of the outer tokens, and the weights of the
token at 0 are the masses.

Shown: random starts, a third of them on one side of 0, the example of six tokens, and tokens at -a, 0 and a for several
V and QK. Rounding errors push the token at 0 away doubly exponentially fast, so these starts are looked at while
u < 40: then all other rows are Boolean to 1e-9. Not shown: V < 0, where tokens collapse and A becomes uniform.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2023emergence",)
__getattr__ = from_files(__name__)
