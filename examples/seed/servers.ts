import type { ServerConfig } from '@toolhost/tool-config/server-config';

/** Configuration of a seeded server, as a person would write it. */
type SeedConfig = { slug: string; name: string; [field: string]: unknown };

/** Name of a secret without a value, so that calls of its server fail realistically. */
export const missingSecret = 'LABEL_PRINTER_KEY';

const json = { 'Content-Type': 'application/json' };

const weather: SeedConfig = {
  slug: 'weather',
  name: 'Weather',
  description: 'Forecasts and places from the public API of Open-Meteo, which asks for no credential.',
  tools: [
    {
      name: 'forecast',
      description: 'Get the temperature and the rain of the next days at a place, by its coordinates',
      method: 'GET',
      url: 'https://api.open-meteo.com/v1/forecast?daily=temperature_2m_max,precipitation_sum',
      input_schema: {
        latitude: { type: 'number', description: 'Degrees north, for example 52.52' },
        longitude: { type: 'number', description: 'Degrees east, for example 13.41' },
        forecast_days: { type: 'integer', minimum: 1, maximum: 16, optional: true, description: 'How many days' },
      },
      response_transform: 'daily',
    },
    {
      name: 'find_place',
      description: 'Find a place by its name, and its coordinates for the forecast',
      method: 'GET',
      url: 'https://geocoding-api.open-meteo.com/v1/search',
      input_schema: {
        name: { type: 'string', description: 'Name of the place, for example Porto' },
        count: { type: 'integer', minimum: 1, maximum: 20, optional: true, description: 'How many places to return' },
      },
      response_transform: 'results',
      response_fields: ['name', 'country', 'latitude', 'longitude'],
    },
  ],
};

const invoices: SeedConfig = {
  slug: 'invoices',
  name: 'Invoices',
  description: 'Customers and their invoices. Agents read and draft; a person sends.',
  authentication: { type: 'Bearer', token: '{{INVOICES_TOKEN}}' },
  tools: [
    {
      name: 'list_invoices',
      description: 'List invoices, newest first; filter by status or customer',
      method: 'GET',
      url: 'https://invoices.example.com/v2/invoices',
      input_schema: {
        status: { type: 'string', enum: ['draft', 'open', 'paid', 'overdue'], optional: true, description: 'State' },
        customer: { type: 'string', optional: true, description: 'Id of a customer, cus_…' },
        limit: { type: 'integer', minimum: 1, maximum: 100, optional: true, default: 20, description: 'How many' },
      },
      response_transform: 'data',
      response_fields: ['id', 'customer', 'status', 'total', 'due_date'],
    },
    {
      name: 'get_invoice',
      description: 'Get one invoice with its lines',
      method: 'GET',
      url: 'https://invoices.example.com/v2/invoices/:id',
      input_schema: { id: { type: 'string', description: 'Id of the invoice, inv_…' } },
    },
    {
      name: 'draft_invoice',
      description: 'Draft an invoice for a customer; it is not sent before a person approves it',
      method: 'POST',
      url: 'https://invoices.example.com/v2/invoices',
      headers: json,
      input_schema: {
        customer: { type: 'string', description: 'Id of the customer, cus_…' },
        lines: {
          type: 'array',
          description: 'What is charged',
          items: { type: 'object', properties: { text: { type: 'string' }, amount: { type: 'number' } } },
        },
      },
    },
    {
      name: 'yearly_report',
      description: 'Sum up a year by customer and month; large, and slow for years with many invoices',
      method: 'GET',
      url: 'https://invoices.example.com/v2/reports/:year',
      input_schema: { year: { type: 'integer', minimum: 2015, maximum: 2100, description: 'Year, for example 2026' } },
      timeout_ms: 20_000,
    },
  ],
};

const helpdesk: SeedConfig = {
  slug: 'helpdesk',
  name: 'Help desk',
  description: 'Tickets of the help desk. Everybody logs in with their own account and sees their own queues.',
  authentication: { type: 'Bearer' },
  oauth: {
    authorization_url: 'https://login.example.com/oauth/authorize',
    token_url: 'https://login.example.com/oauth/token',
    client_id: 'toolhost',
    client_secret: 'a-secret-of-the-seed',
    scopes: ['tickets:read', 'tickets:write'],
  },
  tools: [
    {
      name: 'search_tickets',
      description: 'Search tickets by words, newest first',
      method: 'GET',
      url: 'https://helpdesk.example.com/api/tickets',
      input_schema: {
        query: { type: 'string', description: 'Words to look for' },
        state: { type: 'string', enum: ['new', 'open', 'waiting', 'closed'], optional: true, description: 'State' },
      },
      response_transform: 'tickets',
    },
    {
      name: 'reply_to_ticket',
      description: 'Write a reply to a ticket; the customer gets it by mail at once',
      method: 'POST',
      url: 'https://helpdesk.example.com/api/tickets/:id/replies',
      headers: json,
      input_schema: {
        id: { type: 'integer', description: 'Number of the ticket' },
        text: { type: 'string', description: 'The reply, as plain text' },
      },
    },
    {
      name: 'close_ticket',
      description: 'Close a ticket with a short reason',
      method: 'PATCH',
      url: 'https://helpdesk.example.com/api/tickets/:id',
      headers: json,
      input_schema: {
        id: { type: 'integer', description: 'Number of the ticket' },
        reason: { type: 'string', description: 'Why it is closed' },
      },
    },
  ],
};

const warehouse: SeedConfig = {
  slug: 'warehouse',
  name: 'Warehouse',
  description: 'Stock and parcels. The label printer still waits for its key.',
  tools: [
    {
      name: 'stock_of',
      description: 'How many pieces of an article are in stock, by shelf',
      method: 'GET',
      url: 'https://warehouse.example.com/stock/:article',
      headers: { 'X-Api-Key': '{{WAREHOUSE_KEY}}' },
      input_schema: { article: { type: 'string', description: 'Article number, for example A-1042' } },
    },
    {
      name: 'track_parcel',
      description: 'Where a parcel is, with every stop since it left',
      method: 'GET',
      url: 'https://warehouse.example.com/parcels/:number',
      headers: { 'X-Api-Key': '{{WAREHOUSE_KEY}}' },
      input_schema: { number: { type: 'string', description: 'Parcel number' } },
      response_transform: 'parcel.stops',
    },
    {
      name: 'print_label',
      description: 'Print the label of a parcel at the packing table',
      method: 'POST',
      url: 'https://warehouse.example.com/labels',
      headers: { ...json, 'X-Printer-Key': `{{${missingSecret}}}` },
      input_schema: { number: { type: 'string', description: 'Parcel number' } },
    },
    {
      name: 'scan_shelf',
      description: 'Count a shelf by camera; switched off until the camera is back',
      method: 'POST',
      url: 'https://warehouse.example.com/scans',
      headers: { ...json, 'X-Api-Key': '{{WAREHOUSE_KEY}}' },
      input_schema: { shelf: { type: 'string', description: 'Shelf, for example 12-B' } },
      disabled: true,
    },
  ],
};

/** Servers in addition to the worked example, `projects`. */
export const servers = { weather, invoices, helpdesk, warehouse };

/** Returns the first version of a server that has since changed: only the first tools and a short description. */
export function firstVersion(server: SeedConfig, tools: number): SeedConfig {
  return { ...server, description: server.name, tools: (server.tools as ServerConfig['tools']).slice(0, tools) };
}
