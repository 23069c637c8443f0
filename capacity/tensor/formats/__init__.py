"""One module per format of files of tensors: arrays and archives of numpy, and text."""
