# Which machines are in the catalogue?
commsim systems
