"""Files of integer tensors: ``.npy``, ``.tns`` and ``.txt``.

Files of facts are read by `capacity.database.io`.
"""
