"""Tools for developers of Concord: benches, simulations, studies, mutation testing, pictures, translations.

They may import the helpers of ``tests``. A site needs none of them, and the wheel leaves them out."""
