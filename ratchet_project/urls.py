"""URLs of the full Django stack; ``/v1`` has its own handler (``ratchet_project.asgi``)."""

from django.contrib import admin
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls)]
