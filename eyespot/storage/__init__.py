"""What lies on the disk: how a file or folder is written so that it is there whole or not at all."""
