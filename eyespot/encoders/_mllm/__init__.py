"""Multimodal language models as encoders: how each family is asked, how pictures are packed, adapters merged in."""
