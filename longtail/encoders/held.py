"""Tensors that are no weights but must follow their module to a device."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from torch import Tensor, nn

T = TypeVar("T", bound=Any)  # a named tuple


class Held(nn.Module, Generic[T]):
    """A named tuple of tensors (and plain values) whose tensors are buffers of this module.

    Training points, children of clusters and shortlists are held so: `module.to(device)` moves them with the weights,
    and checkpoints leave them out, because they can be built again. `value` is the tuple.
    """

    def __init__(self, value: T):
        super().__init__()
        self._type, self._fields = type(value), value._asdict()
        for name, part in self._fields.items():
            if isinstance(part, Tensor):
                self.register_buffer(f"held_{name}", part, persistent=False)

    @property
    def value(self) -> T:
        """The named tuple, its tensors on the module's device."""
        return self._type(**{name: self._buffers.get(f"held_{name}", part) for name, part in self._fields.items()})
