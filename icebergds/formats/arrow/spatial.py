"""Spark's form of geometries and geographies in Arrow: structs of an SRID and of WKB.

A column has one coordinate reference system (CRS). Spark knows three, by the numbers of spatial
reference systems (SRID); columns of others it has as WKB.
"""

from __future__ import annotations

import pyarrow as pa

from icebergds.spec.types import GeographyType, GeometryType, IcebergType

_SRIDS = {"OGC:CRS84": 4326, "EPSG:3857": 3857, "SRID:0": 0}
_CRSS = {srid: crs for crs, srid in _SRIDS.items()}
_SRID, _WKB = "srid", "wkb"


def srid_of(field_type: IcebergType) -> int | None:
    """Spark's number for the CRS of a geometry or geography; None if Spark has no such type."""
    match field_type:
        case GeometryType(crs=crs):
            return _SRIDS.get(crs)
        case GeographyType(crs="OGC:CRS84", algorithm="spherical"):
            return _SRIDS["OGC:CRS84"]
        case _:
            return None


def geometry_of(srid: int) -> GeometryType | None:
    """The geometry type of one of Spark's numbers; None for others."""
    crs = _CRSS.get(srid)
    return None if crs is None else GeometryType(crs)


def geography_of(srid: int) -> GeographyType | None:
    """The geography type of Spark's number for it; None for others."""
    found = GeographyType()
    return found if srid == srid_of(found) else None


def spatial_struct(field_type: IcebergType, srid: int) -> pa.StructType:
    """The struct that Spark requires, and sends, for a geometry or geography."""
    kind = b"geometry" if isinstance(field_type, GeometryType) else b"geography"
    metadata = {kind: b"true", b"srid": str(srid).encode()}
    return pa.struct(
        [
            pa.field(_SRID, pa.int32(), nullable=False),
            pa.field(_WKB, pa.binary(), nullable=False, metadata=metadata),
        ]
    )


def is_spatial_struct(data_type: pa.DataType) -> bool:
    """Whether Arrow values are Spark's geometries or geographies."""
    return bool(
        pa.types.is_struct(data_type)
        and [data_type.field(at).name for at in range(data_type.num_fields)] == [_SRID, _WKB]
        and _kind(data_type) is not None
    )


def spatial_obstacle(incoming: pa.StructType, wanted: IcebergType) -> str | None:
    """Why a column does not take Spark's geometries or geographies; None if it does.

    Args:
        incoming: a type for which `is_spatial_struct` is true.
        wanted: the column's type.
    """
    kind = _kind(incoming)
    own = "geometry" if isinstance(wanted, GeometryType) else "geography"
    if kind != own:
        return f"those to write are of the type {kind}; write st_asbinary of them"
    srid = srid_of(wanted)
    if srid is None:
        return "Spark has no such type; write st_asbinary of those to write"
    given = (incoming.field(_WKB).metadata or {}).get(b"srid", b"").decode()
    if given != str(srid):
        instead = f"write st_setsrid(..., {srid}) of them"
        return f"those to write have SRID {given}, not {srid}; {instead}"
    return None


def _kind(data_type: pa.StructType) -> str | None:
    metadata = data_type.field(_WKB).metadata or {}
    return next((kind for kind in ("geometry", "geography") if kind.encode() in metadata), None)
