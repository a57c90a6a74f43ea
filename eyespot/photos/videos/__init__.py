"""Videos by frames: where a frame lies, which frames stand for a video, and the pictures of them."""
