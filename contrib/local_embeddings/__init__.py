"""Embeddings by a BERT model in a folder of this machine, and its token embeddings for BERTScore.

``model`` reads the folder, ``transformer`` computes in numpy, ``choosing`` says which model a run takes.
"""
