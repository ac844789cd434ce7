"""The very small transformer of the contract, for other tests."""

from longtail.contract.encoder import LAYERS as LAYERS
from longtail.contract.encoder import WIDTH as WIDTH
from longtail.contract.encoder import make_encoder as make_encoder
from longtail.contract.encoder import tiny_encoder as tiny_encoder
