"""The commands, one file each; `capacity.cli` registers them."""
