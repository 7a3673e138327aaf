"""The web page (being built)."""

from __future__ import annotations

from fastapi import APIRouter

from driple.web.service import Service

__all__ = ["page_router"]


def page_router(service: Service) -> APIRouter:
    """The routes of the page."""
    return APIRouter()
