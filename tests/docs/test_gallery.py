"""The gallery: every example file has a picture, which shows what the file now says."""

import pytest

from docs import gallery

FILES = gallery.drawn()


@pytest.mark.parametrize("path", FILES, ids=[p.stem for p in FILES])
def test_pictures_are_current(path):
    assert gallery.is_current(path), (
        f"{gallery.picture_of(path).name} shows what {path.name} no longer says: make gallery"
    )


def test_the_film_of_the_demo_is_current():
    assert gallery.is_current(gallery.DEMO, gallery.FILM), "make gallery"


def test_the_page_is_current():
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page(), "make gallery"
    shown = {gallery.picture_of(p) for p in FILES}
    assert shown == set(gallery.PICTURES.glob("*.png")), "a picture of a file that is gone"
    assert ": |" not in gallery.page() and "**: \n" not in gallery.page(), (
        "a file that docs/examples.md does not describe"
    )
