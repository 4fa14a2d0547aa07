"""Embeddings by a BERT model in a local folder, and its token embeddings for BERTScore.

``model`` loads the folder and computes in numpy; ``feature`` chooses the model of a run."""
