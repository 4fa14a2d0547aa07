"""Agreement and correction figures against reference libraries, in a separate environment: ``make crosscheck``.

irrCAC and ppi-python pin old versions of numpy and pandas, which would constrain the product; these tests are skipped
where they are not installed."""
