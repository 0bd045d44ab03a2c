"""The CPU classifier's model: features, scores, samples and its artefact on disk. Pure: no Django, no HTTP.

Training (``nightschool.trainers.classifier``) and serving (``gateway.students.classifier``) share these modules, so
both read a text in the same way. Read in this order: ``features``, ``model``, ``sampling``, ``artefact``, ``cache``.
"""
