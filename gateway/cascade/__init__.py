"""The cascade: who answers a request, decided without I/O.

``serve`` and ``check`` are generators: they yield the ``Call`` they need and are sent its ``Outcome``. Drivers
(``gateway.drivers``) make the calls, asynchronously under the gateway, synchronously under the simulator and Celery.
Read in this order: ``types``, ``confidence``, ``serve``, ``check``.
"""
