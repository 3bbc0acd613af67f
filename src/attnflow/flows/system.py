"""The things that flow: tokens in their own field, and points carried along by them."""

from typing import Any

import jax
import jax.numpy as jnp

from attnflow.fields.base import AbstractField, tangent_drive
from attnflow.flows.methods.base import AbstractSystem, State
from attnflow.tokens import Tokens


class Particles(AbstractSystem):
    """Tokens moving in their own field; the state is their positions."""

    field: AbstractField
    tokens: Tokens

    def rate(self, t: Any, state: State) -> State:
        x = self.tokens.space.retract(state)
        return tangent_drive(self.field, t, x, self.tokens.moved(x), self.tokens.place)

    def retract(self, state: State) -> State:
        return self.tokens.space.retract(state)

    def layer(self, layer: Any, step: Any, state: State, update: Any) -> State:
        step = jnp.asarray(step, state.dtype)
        drive = self.field.drive(
            jnp.asarray(layer, step.dtype) * step, state, self.tokens.moved(state), self.tokens.place
        )
        return update(self.tokens.space, state, drive, step)


class Carried(AbstractSystem):
    """Tokens, points that feel them and exert nothing, and the log-determinant of the flow map at the points.

    State: (positions of the tokens, points, log-determinants). The points have the places `place`.
    """

    field: AbstractField
    tokens: Tokens
    place: Any

    def rate(self, t: Any, state: State) -> State:
        space = self.tokens.space
        x, points, _ = state
        x, points = space.retract(x), space.retract(points)
        mu = self.tokens.moved(x)
        own = tangent_drive(self.field, t, x, mu, self.tokens.place)

        def at(p: Any, place: Any) -> Any:
            p = space.retract(p[None, :])
            return tangent_drive(self.field, t, p, mu, place[None])[0]

        def divergence(p: Any, place: Any) -> Any:
            # at() is constant along normals, so the ambient trace is the divergence on the space
            return jnp.trace(jax.jacfwd(at)(p, place))

        moved = tangent_drive(self.field, t, points, mu, self.place)
        return own, moved, jax.vmap(divergence)(points, self.place)

    def retract(self, state: State) -> State:
        x, points, logdet = state
        return self.tokens.space.retract(x), self.tokens.space.retract(points), logdet

    def layer(self, layer: Any, step: Any, state: State, update: Any) -> State:
        space = self.tokens.space
        x, points, logdet = state
        step = jnp.asarray(step, x.dtype)
        t, mu = jnp.asarray(layer, step.dtype) * step, self.tokens.moved(x)

        def at(p: Any, place: Any) -> Any:
            p = space.retract(p[None, :])
            return update(space, p, self.field.drive(t, p, mu, place[None]), step)[0]

        def stretching(p: Any, place: Any) -> Any:
            jacobian = jax.jacfwd(at)(p, place)
            end = at(p, place)
            # in R^d the normal space is empty; on the sphere x -> end completes the tangent map to an invertible one
            normal = p - space.tangent(p, p)
            return jnp.linalg.slogdet(jacobian + jnp.outer(end - space.tangent(end, end), normal))[1]

        own = update(space, x, self.field.drive(t, x, mu, self.tokens.place), step)
        moved = update(space, points, self.field.drive(t, points, mu, self.place), step)
        return own, moved, logdet + jax.vmap(stretching)(points, self.place)
