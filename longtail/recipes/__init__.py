"""The recipes: one short file per published system. The table below is all that naming one imports."""

from longtail.core.recipe import recipes

recipes.add("auto", "longtail.recipes.auto:Auto")
recipes.add("popular", "longtail.recipes.popular:Popular")
recipes.add("neighbours", "longtail.recipes.neighbours:Neighbours")
recipes.add("xr-linear", "longtail.recipes.xr_linear:XRLinear")
recipes.add("parabel", "longtail.recipes.parabel:Parabel")
recipes.add("bonsai", "longtail.recipes.bonsai:Bonsai")
recipes.add("dismec", "longtail.recipes.dismec:Dismec")
recipes.add("astec", "longtail.recipes.astec:Astec")
recipes.add("decaf", "longtail.recipes.decaf:Decaf")
recipes.add("eclare", "longtail.recipes.eclare:Eclare")
recipes.add("inceptionxml", "longtail.recipes.inceptionxml:InceptionXML")
recipes.add("inceptionxml-lf", "longtail.recipes.inceptionxml_lf:InceptionXMLLF")
recipes.add("unidec", "longtail.recipes.unidec:UniDEC")
recipes.add("depsl", "longtail.recipes.depsl:DePSL")
recipes.add("ngame", "longtail.recipes.ngame:NGAME")
recipes.add("siamesexml", "longtail.recipes.siamesexml:SiameseXML")
recipes.add("dpr", "longtail.recipes.dpr:DPR")
recipes.add("ance", "longtail.recipes.ance:ANCE")
recipes.add("dexml", "longtail.recipes.dexml:DEXML")
recipes.add("renee", "longtail.recipes.renee:Renee")
