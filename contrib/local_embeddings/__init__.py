"""Embeddings by a BERT model in a folder of this machine, and its token embeddings for BERTScore.

``model`` reads the folder and computes in numpy, ``feature`` chooses the model of a run.
"""
