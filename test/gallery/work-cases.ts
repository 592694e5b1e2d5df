import type { GalleryExample } from './case.ts';

const paragraph = (content: string) => ({
  object: 'block',
  type: 'paragraph',
  paragraph: { rich_text: [{ type: 'text', text: { content } }] },
});

/** Responses as documented at developers.notion.com. */
const notion: GalleryExample = {
  name: 'notion',
  origins: ['https://api.notion.com'],
  env: { NOTION_TOKEN: 'ntn_example' },
  headers: { authorization: 'Bearer ntn_example', 'notion-version': '2022-06-28' },
  cases: [
    {
      call: ['search', { query: 'Tuscan kale' }],
      request: 'POST /v1/search',
      body: { query: 'Tuscan kale', page_size: 20 },
      response: {
        object: 'list',
        results: [{ object: 'page', id: '954b67f9', url: 'https://www.notion.so/954b67f9', archived: false }],
        next_cursor: null,
        has_more: false,
      },
      result: {
        results: [{ object: 'page', id: '954b67f9', url: 'https://www.notion.so/954b67f9' }],
        has_more: false,
        next_cursor: null,
      },
    },
    {
      call: ['get_page', { page_id: '59833787-2cf9-4fdf-8782-e53db20768a5' }],
      request: 'GET /v1/pages/59833787-2cf9-4fdf-8782-e53db20768a5',
      response: { object: 'page', id: '59833787', archived: false, properties: {}, url: 'https://www.notion.so/x' },
      result: { id: '59833787', url: 'https://www.notion.so/x', properties: {}, archived: false },
    },
    {
      call: ['read_page', { page_id: '59833787', page_size: 100 }],
      request: 'GET /v1/blocks/59833787/children?page_size=100',
      response: { object: 'list', results: [], next_cursor: null, has_more: false },
    },
    {
      call: [
        'query_database',
        { database_id: 'd9824bdc', filter: { property: 'Done', checkbox: { equals: true } }, start_cursor: 'c' },
      ],
      request: 'POST /v1/databases/d9824bdc/query',
      body: { filter: { property: 'Done', checkbox: { equals: true } }, page_size: 20, start_cursor: 'c' },
      response: { object: 'list', results: [], next_cursor: null, has_more: false },
      result: { results: [], has_more: false, next_cursor: null },
    },
    {
      call: ['create_page', { parent_id: '494c87d0', title: 'Tuscan kale', text: 'Lacinato kale is ":good".' }],
      request: 'POST /v1/pages',
      body: {
        parent: { page_id: '494c87d0' },
        properties: { title: { title: [{ text: { content: 'Tuscan kale' } }] } },
        children: [paragraph('Lacinato kale is ":good".')],
      },
      response: { object: 'page', id: '59833787', url: 'https://www.notion.so/Tuscan-kale-59833787' },
      result: { id: '59833787', url: 'https://www.notion.so/Tuscan-kale-59833787' },
    },
    {
      call: ['append_paragraph', { page_id: '59833787', text: 'More' }],
      request: 'PATCH /v1/blocks/59833787/children',
      body: { children: [paragraph('More')] },
      response: { object: 'list', results: [{ object: 'block', id: 'b1', type: 'paragraph' }], has_more: false },
      result: { results: [{ id: 'b1', type: 'paragraph' }] },
    },
  ],
};

/** Responses as documented at docs.slack.dev. */
const slack: GalleryExample = {
  name: 'slack',
  origins: ['https://slack.com'],
  env: { SLACK_BOT_TOKEN: 'xoxb-example' },
  headers: { authorization: 'Bearer xoxb-example' },
  cases: [
    {
      call: ['list_channels', {}],
      request: 'GET /api/conversations.list?types=public_channel%2Cprivate_channel&exclude_archived=true&limit=200',
      response: {
        ok: true,
        channels: [{ id: 'C012AB3CD', name: 'general', is_channel: true, topic: { value: 'News' }, num_members: 4 }],
        response_metadata: { next_cursor: 'dGVhbTpDMDYxRkE1UEI=' },
      },
      result: {
        ok: true,
        channels: [{ id: 'C012AB3CD', name: 'general', topic: { value: 'News' }, num_members: 4 }],
        response_metadata: { next_cursor: 'dGVhbTpDMDYxRkE1UEI=' },
      },
    },
    {
      call: ['read_channel', { channel: 'C012AB3CD', oldest: '1512085950.000216' }],
      request: 'GET /api/conversations.history?channel=C012AB3CD&oldest=1512085950.000216&limit=20',
      response: {
        ok: true,
        messages: [{ type: 'message', user: 'U012AB3CDE', text: 'Hello', ts: '1512085950.000216' }],
        has_more: true,
        pin_count: 0,
        response_metadata: { next_cursor: 'bmV4dF90czox' },
      },
      result: {
        ok: true,
        messages: [{ user: 'U012AB3CDE', text: 'Hello', ts: '1512085950.000216' }],
        has_more: true,
        response_metadata: { next_cursor: 'bmV4dF90czox' },
      },
    },
    {
      call: ['read_thread', { channel: 'C012AB3CD', ts: '1482960137.003543' }],
      request: 'GET /api/conversations.replies?channel=C012AB3CD&ts=1482960137.003543',
      response: { ok: false, error: 'thread_not_found' },
    },
    {
      call: ['post_message', { channel: 'C123456', text: "Here's a *message*", thread_ts: '1503435956.000247' }],
      request: 'POST /api/chat.postMessage',
      headers: { 'content-type': 'application/json; charset=utf-8' },
      body: { channel: 'C123456', text: "Here's a *message*", thread_ts: '1503435956.000247', unfurl_links: false },
      response: { ok: true, channel: 'C123456', ts: '1503435956.000248', message: { text: "Here's a *message*" } },
      result: { ok: true, channel: 'C123456', ts: '1503435956.000248' },
    },
    {
      call: ['add_reaction', { channel: 'C123456', timestamp: '1503435956.000247', name: 'thumbsup' }],
      request: 'POST /api/reactions.add',
      headers: { 'content-type': 'application/json; charset=utf-8' },
      body: { channel: 'C123456', timestamp: '1503435956.000247', name: 'thumbsup' },
      response: { ok: false, error: 'already_reacted' },
    },
    {
      call: ['find_person', { email: 'spengler+work@ghostbusters.example.com' }],
      request: 'GET /api/users.lookupByEmail?email=spengler%2Bwork%40ghostbusters.example.com',
      response: {
        ok: true,
        user: { id: 'W012A3CDE', name: 'spengler', real_name: 'Egon', tz: 'America/New_York', color: 'x' },
      },
      result: { ok: true, user: { id: 'W012A3CDE', name: 'spengler', real_name: 'Egon', tz: 'America/New_York' } },
    },
  ],
};

const form = 'application/x-www-form-urlencoded';

/** Responses as documented at docs.stripe.com/api. */
const stripe: GalleryExample = {
  name: 'stripe',
  origins: ['https://api.stripe.com'],
  env: { STRIPE_KEY: 'rk_test_example' },
  headers: { authorization: 'Bearer rk_test_example', 'stripe-version': '2025-03-31.basil' },
  cases: [
    {
      call: ['get_balance', {}],
      request: 'GET /v1/balance',
      response: { object: 'balance', available: [{ amount: 666670, currency: 'usd' }], livemode: false, pending: [] },
      result: { available: [{ amount: 666670, currency: 'usd' }], pending: [], livemode: false },
    },
    {
      call: ['list_customers', { email: 'jenny+1@example.com', limit: 3 }],
      request: 'GET /v1/customers?email=jenny%2B1%40example.com&limit=3',
      response: { object: 'list', url: '/v1/customers', has_more: false, data: [] },
      result: { data: [], has_more: false },
    },
    {
      call: ['create_customer', { name: 'Jenny Rosen', metadata: { crm: '47 11', a: 'b&c' }, idempotency_key: 'k-1' }],
      request: 'POST /v1/customers',
      headers: { 'content-type': form, 'idempotency-key': 'k-1' },
      body: 'name=Jenny%20Rosen&metadata%5Bcrm%5D=47%2011&metadata%5Ba%5D=b%26c',
      response: { id: 'cus_NffrFeUfNV2Hib', object: 'customer', name: 'Jenny Rosen', email: null, balance: 0 },
      result: { id: 'cus_NffrFeUfNV2Hib', name: 'Jenny Rosen', email: null },
    },
    {
      call: ['list_invoices', { customer: 'cus_1', status: 'open', created: { gte: 1767225600, lt: 1769904000 } }],
      request: 'GET /v1/invoices?customer=cus_1&status=open&created%5Bgte%5D=1767225600&created%5Blt%5D=1769904000',
      response: { object: 'list', has_more: true, data: [{ id: 'in_1', status: 'open', total: 1000, lines: {} }] },
      result: { data: [{ id: 'in_1', status: 'open', total: 1000 }], has_more: true },
    },
    {
      call: ['search_payments', { query: "status:'succeeded' AND amount>1000" }],
      request: 'GET /v1/payment_intents/search?query=status%3A%27succeeded%27%20AND%20amount%3E1000',
      response: { object: 'search_result', has_more: false, data: [] },
      result: { data: [], has_more: false },
    },
    {
      call: [
        'create_payment_link',
        {
          line_items: [
            { price: 'price_1', quantity: 1 },
            { price: 'price_2', quantity: 3 },
          ],
        },
      ],
      request: 'POST /v1/payment_links',
      headers: { 'content-type': form },
      body: [
        'line_items%5B0%5D%5Bprice%5D=price_1&line_items%5B0%5D%5Bquantity%5D=1',
        'line_items%5B1%5D%5Bprice%5D=price_2&line_items%5B1%5D%5Bquantity%5D=3',
      ].join('&'),
      response: { id: 'plink_1', object: 'payment_link', active: true, url: 'https://buy.stripe.com/test_1' },
      result: { id: 'plink_1', active: true, url: 'https://buy.stripe.com/test_1' },
    },
    {
      call: ['refund_payment', { payment_intent: 'pi_1', amount: 100, reason: 'requested_by_customer' }],
      request: 'POST /v1/refunds',
      headers: { 'content-type': form },
      body: 'payment_intent=pi_1&amount=100&reason=requested_by_customer',
      response: { id: 're_1', object: 'refund', amount: 100, currency: 'usd', status: 'succeeded', charge: 'ch_1' },
      result: { id: 're_1', amount: 100, currency: 'usd', status: 'succeeded' },
    },
  ],
};

export const workExamples = [notion, slack, stripe];
