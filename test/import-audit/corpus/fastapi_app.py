"""Prints the OpenAPI document of an application with forty endpoints, as FastAPI itself writes it."""

import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, Union
from uuid import UUID

from fastapi import Body, Cookie, FastAPI, File, Form, Header, Path, Query, UploadFile
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, Json, computed_field

app = FastAPI(title="Forty endpoints", version="1.0.0")


class Status(str, Enum):
    draft = "draft"
    open = "open"
    done = "done"


class Level(IntEnum):
    low = 1
    high = 2


class Address(BaseModel):
    street: str = Field(min_length=1, max_length=80)
    city: str
    zip_code: str | None = Field(default=None, pattern=r"^[0-9]{5}$")


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=1, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]
    is_good: bool = True


class Node(BaseModel):
    title: str
    children: list["Node"] = []


class Customer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    email: str | None = None
    address: Address
    other_addresses: list[Address] | None = None
    tags: set[str] = set()
    status: Status = Status.open
    level: Level | None = None


class Order(BaseModel):
    customer_id: UUID
    total: Decimal = Field(gt=0, max_digits=8, decimal_places=2)
    quantity: Annotated[int, Field(multiple_of=5)] = 5
    placed_at: datetime
    due: date | None = None
    at: time | None = None
    span: timedelta | None = None
    pet: Annotated[Union[Cat, Dog], Field(discriminator="kind")] | None = None
    labels: dict[str, str] = {}
    counts: dict[str, list[int]] | None = None
    point: tuple[float, float] | None = None
    extra: Any = None
    website: AnyUrl | None = None
    settings: Json[dict[str, int]] | None = None

    @computed_field
    @property
    def slug(self) -> str:
        return str(self.customer_id)


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    type_: str = Field(alias="@type")
    size: int = Field(alias="größe")
    first_name: str = Field(alias="firstName")


class Filters(BaseModel):
    model_config = ConfigDict(extra="forbid")
    limit: int = Field(100, gt=0, le=100)
    offset: int = Field(0, ge=0)
    order_by: Literal["created_at", "updated_at"] = "created_at"
    tags: list[str] = []


class CommonHeaders(BaseModel):
    x_tenant: str
    x_tags: list[str] = []
    if_modified_since: str | None = None


class Cookies(BaseModel):
    session_id: str
    tracker: str | None = None


class Login(BaseModel):
    username: str
    password: str
    remember: bool = False


@app.get("/items/{item_id}")
def read_item(item_id: int, q: str | None = None): ...


@app.get("/items")
def list_items(skip: int = 0, limit: Annotated[int, Query(ge=1, le=100)] = 10, q: Annotated[str | None, Query(min_length=3, max_length=50, pattern="^[a-z ]+$")] = None): ...


@app.get("/items-by-tags")
def list_by_tags(tags: Annotated[list[str], Query()], ids: Annotated[list[int] | None, Query()] = None): ...


@app.get("/filtered")
def list_filtered(filters: Annotated[Filters, Query()]): ...


@app.get("/status/{status}")
def by_status(status: Status, level: Level | None = None): ...


@app.get("/files/{file_path:path}")
def read_file(file_path: str, download: bool = False): ...


@app.get("/aliased")
def aliased(item_query: Annotated[str, Query(alias="item-query")], flag: Annotated[bool | None, Query(alias="is[flag]")] = None): ...


@app.get("/headers")
def headers(x_token: Annotated[list[str] | None, Header()] = None, user_agent: Annotated[str | None, Header()] = None, x_request_id: Annotated[UUID | None, Header()] = None): ...


@app.get("/header-model")
def header_model(headers: Annotated[CommonHeaders, Header()]): ...


@app.get("/cookies")
def cookies(ads_id: Annotated[str | None, Cookie()] = None): ...


@app.get("/cookie-model")
def cookie_model(cookies: Annotated[Cookies, Cookie()]): ...


@app.get("/dates/{day}")
def dates(day: date, since: datetime | None = None, at: time | None = None, span: timedelta | None = None): ...


@app.get("/numbers/{number}")
def numbers(number: Annotated[float, Path(gt=0, lt=10.5)], price: Decimal | None = None, even: Annotated[int | None, Query(multiple_of=2)] = None): ...


@app.get("/unions")
def unions(value: int | str, other: Annotated[int | float | bool | None, Query()] = None, one: Literal["a", "b", 3] = "a"): ...


@app.get("/deprecated", deprecated=True)
def deprecated(old: Annotated[str | None, Query(deprecated=True)] = None, hidden: Annotated[str | None, Query(include_in_schema=False)] = None): ...


@app.post("/customers")
def create_customer(customer: Customer): ...


@app.put("/customers/{customer_id}")
def replace_customer(customer_id: UUID, customer: Customer, notify: bool = True): ...


@app.patch("/customers/{customer_id}")
def change_customer(customer_id: UUID, changes: dict[str, Any]): ...


@app.delete("/customers/{customer_id}")
def delete_customer(customer_id: UUID, reason: Annotated[str | None, Body(embed=True)] = None): ...


@app.post("/orders")
def create_order(order: Order): ...


@app.post("/orders/bulk")
def create_orders(orders: list[Order], dry_run: bool = False): ...


@app.post("/orders/with-customer")
def create_both(order: Order, customer: Customer, importance: Annotated[int, Body(gt=0)] = 1): ...


@app.post("/orders/embedded")
def create_embedded(order: Annotated[Order, Body(embed=True)]): ...


@app.post("/loose")
def create_loose(loose: Loose): ...


@app.post("/aliased")
def create_aliased(aliased: Aliased): ...


@app.post("/tree")
def create_tree(node: Node): ...


@app.post("/pets")
def create_pet(pet: Annotated[Union[Cat, Dog], Body(discriminator="kind")]): ...


@app.post("/either")
def create_either(value: Union[Cat, Dog, None] = None): ...


@app.post("/numbers")
def sum_numbers(numbers: Annotated[list[float], Body(min_length=1, max_length=10)]): ...


@app.post("/weights")
def index_weights(weights: dict[int, float]): ...


@app.post("/text")
def create_text(text: Annotated[str, Body(media_type="text/plain")]): ...


@app.post("/bytes")
def create_bytes(content: Annotated[bytes, Body(media_type="application/octet-stream")]): ...


@app.post("/merge")
def merge(patch: Annotated[Address, Body(media_type="application/merge-patch+json")]): ...


@app.post("/login")
def login(username: Annotated[str, Form()], password: Annotated[str, Form()], scopes: Annotated[list[str], Form()] = []): ...


@app.post("/login-model")
def login_model(data: Annotated[Login, Form()]): ...


@app.post("/upload")
def upload(file: UploadFile): ...


@app.post("/upload-optional")
def upload_optional(file: UploadFile | None = None, note: Annotated[str | None, Form()] = None): ...


@app.post("/upload-many")
def upload_many(files: list[UploadFile], names: Annotated[list[str] | None, Form()] = None): ...


@app.post("/upload-bytes")
def upload_bytes(file: Annotated[bytes, File()], token: Annotated[str, Form()], level: Annotated[Level, Form()] = Level.low): ...


@app.post("/upload-many-bytes/{folder_id}")
def upload_many_bytes(folder_id: int, files: Annotated[list[bytes], File()], is_public: Annotated[bool, Form()] = False): ...


print(json.dumps(app.openapi()))
