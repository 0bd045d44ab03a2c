"""URLs of the slim handler."""

from django.urls import path

from gateway.api import api

urlpatterns = [path("v1/", api.urls)]
