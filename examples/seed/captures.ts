import { mask } from '@toolhost/tool-config/server-config';
import type { Capture } from '../../apps/server/src/store/calls/captures.ts';
import type { SeedCall } from './traffic.ts';

const origin = 'https://invoices.example.com';
const invoice = { id: 'inv_2031', customer: 'cus_77', status: 'open', total: 1280.5, due_date: '2027-01-15' };

type Exchange = { method: 'GET' | 'POST'; path: string; args: { [name: string]: unknown }; response: unknown };

const exchanges: { [tool: string]: Exchange } = {
  list_invoices: {
    method: 'GET',
    path: '/v2/invoices?status=open&limit=20',
    args: { status: 'open', limit: 20 },
    response: { data: [invoice, { ...invoice, id: 'inv_2029', customer: 'cus_12', total: 90 }], has_more: false },
  },
  get_invoice: {
    method: 'GET',
    path: '/v2/invoices/inv_2031',
    args: { id: 'inv_2031' },
    response: { ...invoice, lines: [{ text: 'Consulting, 8 hours', amount: 1280.5 }] },
  },
  draft_invoice: {
    method: 'POST',
    path: '/v2/invoices',
    args: { customer: 'cus_77', lines: [{ text: 'Consulting, 8 hours', amount: 1280.5 }] },
    response: { ...invoice, status: 'draft' },
  },
  yearly_report: {
    method: 'GET',
    path: '/v2/reports/2026',
    args: { year: 2026 },
    response: { year: 2026, months: [] },
  },
};

/** Returns the capture of a call to the invoices API as JSON text. */
export function makeCapture({ usage, status, outcome }: SeedCall): string {
  const { method, path, args, response } = exchanges[usage.tool] as Exchange;
  const body = JSON.stringify(outcome === 'ok' ? response : { error: { message: 'The API could not do that.' } });
  const isSent = outcome !== 'invalid_arguments' && outcome !== 'limited' && outcome !== 'internal';
  const requestBody = method === 'POST' ? JSON.stringify(args) : undefined;
  const headers = ['Authorization', `Bearer ${mask}`, 'Accept', 'application/json'];
  const capture: Capture = {
    arguments: args,
    argumentsBytes: Buffer.byteLength(JSON.stringify(args)),
    ...(isSent && {
      request: {
        method,
        origin,
        path,
        headers: requestBody === undefined ? headers : [...headers, 'Content-Type', 'application/json'],
        body: requestBody,
      },
    }),
    ...(status !== null && {
      response: {
        status,
        headers: [['content-type', 'application/json']],
        body,
        bodyBytes: Buffer.byteLength(body),
      },
    }),
  };
  return JSON.stringify(capture);
}
