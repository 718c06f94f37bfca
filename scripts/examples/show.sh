# What is an HGX H100 made of, how fast is each link, and who says so?
commsim show hgx-h100 --nodes 4 --sources
