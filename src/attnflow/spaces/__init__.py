"""Where tokens live: the images of layer norms (spheres, ellipsoids, centred spheres), tori, products, and R^d.

`AbstractSpace` says what flows, noise, flow maps, stability, clusters and figures ask of a space.
"""

from attnflow.lazy import listing
from attnflow.spaces.base import AbstractSpace, Broadcast, Picture, Point
from attnflow.spaces.euclidean import Euclidean
from attnflow.spaces.products import Product, Torus
from attnflow.spaces.spheres import CentredSphere, Ellipsoid, Sphere

__all__ = [
    "AbstractSpace",
    "Broadcast",
    "CentredSphere",
    "Ellipsoid",
    "Euclidean",
    "Picture",
    "Point",
    "Product",
    "Sphere",
    "Torus",
]
__dir__ = listing(__all__)
