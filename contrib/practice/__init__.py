"""Practice for new reviewers: ten answers with their authors' ratings, and feedback on the differences.

``items`` is pure; ``views`` stores the progress and shows the pages. Practice enters no figure."""
