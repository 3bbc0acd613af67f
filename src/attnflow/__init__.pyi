"""What `import attnflow` offers, for editors and type checkers; written by `python -m tests.stub`."""

# ruff: noqa: I001 (the order is that of the lazy list in __init__.py)

__version__: str

from attnflow import tokens as tokens
from attnflow import spaces as spaces
from attnflow import kernels as kernels
from attnflow import masks as masks
from attnflow import sums as sums
from attnflow import fields as fields
from attnflow.fields import weights as weights
from attnflow.fields import norms as norms
from attnflow.fields import encodings as encodings
from attnflow import flows as flows
from attnflow.flows.methods import rules as rules
from attnflow import observe as observe
from attnflow import meanfield as meanfield
from attnflow import stability as stability
from attnflow import learn as learn
from attnflow import theory as theory
from attnflow import special as special
from attnflow import runs as runs
from attnflow import plots as plots
from attnflow import experiments as experiments
from attnflow import errors as errors
from attnflow.axes import Along as Along
from attnflow.precision import double as double
from attnflow.spaces import Euclidean as Euclidean
from attnflow.spaces import Product as Product
from attnflow.spaces import Sphere as Sphere
from attnflow.spaces import Torus as Torus
from attnflow.tokens import Measure as Measure
from attnflow.tokens import Tokens as Tokens
from attnflow.tokens import from_array as from_array
from attnflow.tokens import stack as stack
from attnflow.tokens import uniform as uniform
from attnflow.masks import Causal as Causal
from attnflow.masks import Window as Window
from attnflow.fields import AbstractField as AbstractField
from attnflow.fields import Attention as Attention
from attnflow.fields import Composed as Composed
from attnflow.fields import Hardmax as Hardmax
from attnflow.fields import Perceptron as Perceptron
from attnflow.fields import Potential as Potential
from attnflow.fields import Rescaled as Rescaled
from attnflow.fields import Sinkhorn as Sinkhorn
from attnflow.fields import Softmax as Softmax
from attnflow.fields import Unnormalised as Unnormalised
from attnflow.flows import Adaptive as Adaptive
from attnflow.flows import Alternate as Alternate
from attnflow.flows import Brownian as Brownian
from attnflow.flows import Exact as Exact
from attnflow.flows import Fixed as Fixed
from attnflow.flows import Heun as Heun
from attnflow.flows import Layers as Layers
from attnflow.flows import LongTime as LongTime
from attnflow.flows import Observable as Observable
from attnflow.flows import advance as advance
from attnflow.flows import flow_map as flow_map
from attnflow.flows import merge_times as merge_times
from attnflow.flows import solve as solve
from attnflow.flows import solve_long as solve_long
from attnflow.plots import plot as plot
from attnflow.runs import open_run as open_run
from attnflow.runs import register as register
