import { asText, field, isFields, type JsonFields, listOf } from '../document/lenient.ts';
import type { ApiDescription, Finding } from '../model.ts';
import { type DescribedRequest, describeRequests } from './described-requests.ts';
import type { RequestBody } from './request-bodies.ts';

export function isPostman(root: unknown): root is JsonFields {
  return isFields(root) && Array.isArray(root.item) && isFields(root.info);
}

const deepestFolder = 20;

/** Reads a Postman collection of format 2.0 or 2.1. */
export function readPostman(root: JsonFields): ApiDescription {
  const variables = new Map(
    listOf(root.variable).map((one) => [asText(field(one, 'key') ?? field(one, 'id')), asText(field(one, 'value'))]),
  );
  const findings: Finding[] = [];
  const add = (at: string, message: string) => findings.push({ at, message });
  const requests = requestsIn(root.item, { tags: [], auth: root.auth, at: 'item', add });
  const filled = requests.map((request) => ({ ...request, url: withHost(request.url, variables) }));
  const title = asText(field(root.info, 'name'));
  const description = textOfDescription(field(root.info, 'description'));
  return describeRequests(filled, { format: 'Postman', version: '', title, description }, findings);
}

function textOfDescription(value: unknown): string {
  return asText(value) || asText(field(value, 'content'));
}

/** Fills the variables before the path, which are the address of the API. */
function withHost(url: string, variables: ReadonlyMap<string, string>): string {
  return url.replace(/^(?:[a-z]+:\/\/)?[^/?]*/i, (host) =>
    host.replaceAll(/\{\{\s*([\w.-]+)\s*\}\}/g, (found, name: string) => variables.get(name) || found),
  );
}

type Folder = { tags: readonly string[]; auth: unknown; at: string; add: (at: string, message: string) => void };

function requestsIn(items: unknown, folder: Folder): DescribedRequest[] {
  if (folder.tags.length > deepestFolder) {
    folder.add(folder.at, `is in more than ${deepestFolder} folders; left out`);
    return [];
  }
  return listOf(items).flatMap((item, index): DescribedRequest[] => {
    const at = `${folder.at}[${index}]`;
    const name = asText(field(item, 'name'));
    const auth = field(item, 'auth') ?? folder.auth;
    const inner = field(item, 'item');
    if (Array.isArray(inner))
      return requestsIn(inner, { ...folder, tags: [...folder.tags, name], auth, at: `${at}.item` });
    const request = field(item, 'request');
    const url = urlOf(typeof request === 'string' ? request : field(request, 'url'));
    if (url === '') {
      folder.add(at, 'is no request with an address; left out');
      return [];
    }
    const own = field(request, 'auth') ?? auth;
    const headers = headersOf(field(request, 'header'));
    return [
      {
        name,
        description: textOfDescription(field(request, 'description')),
        tags: folder.tags.slice(0, 1),
        method: (asText(field(request, 'method')) || 'GET').toUpperCase(),
        url,
        headers,
        body: bodyOf(field(request, 'body'), headers),
        auth: authOf(own),
        at,
      },
    ];
  });
}

function urlOf(url: unknown): string {
  if (typeof url === 'string') return url;
  const raw = asText(field(url, 'raw')) || withoutRaw(url);
  const hasDisabled = listOf(field(url, 'query')).some((pair) => field(pair, 'disabled') === true);
  // Disabled pairs are missing from the raw text, and are optional inputs all the same.
  return hasDisabled ? `${raw.split('?')[0]}?${queryOf(url)}` : raw;
}

function queryOf(url: unknown): string {
  const encoded = (pair: unknown, name: string) => encodeURIComponent(asText(field(pair, name)));
  const pairs = listOf(field(url, 'query')).map((pair) => `${encoded(pair, 'key')}=${encoded(pair, 'value')}`);
  return pairs.join('&');
}

/** The text of an address that has only its parts. */
function withoutRaw(url: unknown): string {
  const texts = (value: unknown, between: string) =>
    Array.isArray(value)
      ? value.map((part) => asText(field(part, 'value')) || asText(part)).join(between)
      : asText(value);
  const host = texts(field(url, 'host'), '.');
  if (host === '') return '';
  const protocol = asText(field(url, 'protocol'));
  const port = asText(field(url, 'port'));
  const address = `${protocol === '' ? '' : `${protocol.replace(/(?<!\/)\/+$/, '').replace(/:$/, '')}://`}${host}${port === '' ? '' : `:${port}`}`;
  const query = queryOf(url);
  return `${address}/${texts(field(url, 'path'), '/').replace(/^\/+/, '')}${query && `?${query}`}`;
}

function authOf(auth: unknown): DescribedRequest['auth'] {
  const type = asText(field(auth, 'type'));
  if (type === 'apikey') return keyOf(auth);
  if (type === 'basic') return 'basic';
  if (type === 'bearer' || type === 'oauth2' || type === 'jwt') return 'bearer';
  if (type === 'awsv4') return { region: valueIn(auth, type, 'region'), service: valueIn(auth, type, 'service') };
  return type === '' || type === 'noauth' ? undefined : { unsupported: type };
}

function valueIn(auth: unknown, type: string, key: string): string {
  const entries = field(auth, type);
  if (isFields(entries)) return asText(entries[key]);
  const entry = listOf(entries).find((one) => field(one, 'key') === key);
  return asText(field(entry, 'value'));
}

function keyOf(auth: unknown): { in: 'header' | 'query'; name: string } {
  const isQuery = valueIn(auth, 'apikey', 'in') === 'query';
  return {
    in: isQuery ? 'query' : 'header',
    name: valueIn(auth, 'apikey', 'key') || (isQuery ? 'api_key' : 'X-API-Key'),
  };
}

function headersOf(value: unknown): [string, string][] {
  return listOf(value).flatMap((header): [string, string][] => {
    const name = asText(field(header, 'key'));
    return name === '' || field(header, 'disabled') === true ? [] : [[name, asText(field(header, 'value'))]];
  });
}

function bodyOf(body: unknown, headers: readonly [string, string][]): RequestBody | undefined {
  const mode = asText(field(body, 'mode'));
  const given = headers.find(([name]) => /^content-type$/i.test(name))?.[1].trim();
  if (mode === 'urlencoded' || mode === 'formdata') {
    const fields = listOf(field(body, mode)).map((one) => ({
      name: asText(field(one, 'key')),
      value: asText(field(one, 'value')),
      isFile: field(one, 'type') === 'file',
    }));
    const mediaType = mode === 'formdata' ? 'multipart/form-data' : 'application/x-www-form-urlencoded';
    return { mediaType, fields: fields.filter(({ name }) => name !== '') };
  }
  if (mode === 'graphql') return graphqlBody(field(body, 'graphql'));
  if (mode === 'file') return { mediaType: given || 'application/octet-stream', text: '' };
  const text = asText(field(body, 'raw'));
  if (mode !== 'raw' || text.trim() === '') return undefined;
  const language = asText(field(field(field(body, 'options'), 'raw'), 'language'));
  const usual = language === 'xml' ? 'application/xml' : language === 'text' ? 'text/plain' : 'application/json';
  return { mediaType: given || usual, text };
}

/** The variables are a text of JSON, or are not there. */
function graphqlBody(graphql: unknown): RequestBody {
  const { query, operationName } = isFields(graphql) ? graphql : {};
  const variables = asText(field(graphql, 'variables')).trim();
  const name = asText(operationName) === '' ? '' : `"operationName":${JSON.stringify(asText(operationName))},`;
  return {
    mediaType: 'application/json',
    text: `{${name}"query":${JSON.stringify(asText(query))},"variables":${variables.startsWith('{') ? variables : '{}'}}`,
  };
}
