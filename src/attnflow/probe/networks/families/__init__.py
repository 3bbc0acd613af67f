"""Families of networks: Llama (pre-norm decoders), BERT and ALBERT (post-norm encoders)."""
