"""The formats of model files, one file each: they register themselves."""
