"""Run a pretrained model and keep what its attention saw; a function a model family."""
