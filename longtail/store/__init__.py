"""On-disk formats: folders that are written atomically and read memory-mapped, and the cache."""

from longtail.store.cache import cached as cached
from longtail.store.folder import open_folder as open_folder
from longtail.store.folder import save_folder as save_folder
from longtail.store.manifest import read_manifest as read_manifest
from longtail.store.model import Saved as Saved
from longtail.store.model import StoredModel as StoredModel
from longtail.store.model import check_model_place as check_model_place
from longtail.store.model import describe as describe
from longtail.store.model import load as load
from longtail.store.model import packed as packed
from longtail.store.model import sweep_model as sweep_model
from longtail.store.model import unpacked as unpacked
