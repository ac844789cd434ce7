"""What every recipe must do: checks that are run over our recipes by the tests, and over any by `longtail contract`."""
