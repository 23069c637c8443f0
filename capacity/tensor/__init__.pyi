from .sparse import SparseTensor as SparseTensor
