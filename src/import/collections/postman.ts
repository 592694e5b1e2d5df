import { asText, field, isFields, type JsonFields, listOf } from '../document/lenient.ts';
import type { ApiDescription, Finding } from '../model.ts';
import { type DescribedRequest, describeRequests } from './described-requests.ts';
import {
  addQuery,
  type CollectionPair,
  listSentHeaders,
  readDescriptionText,
  readPairs,
  toDescribedInputs,
  toFormFields,
} from './pairs.ts';
import { collectVariables } from './placeholders.ts';
import { makeGraphqlBody, type RequestBody, readBodyText } from './request-bodies.ts';

/** Returns true for a collection, also as the Postman API returns it: inside `collection`. */
export function isPostman(root: unknown): root is JsonFields {
  const collection = collectionOf(root);
  return isFields(collection) && Array.isArray(collection.item) && isFields(collection.info);
}

function collectionOf(root: unknown): unknown {
  return field(root, 'collection') ?? root;
}

const deepestFolder = 20;

/** Reads a Postman collection of format 2.0 or 2.1. */
export function readPostman(root: JsonFields): ApiDescription {
  const collection = collectionOf(root) as JsonFields;
  const variables = collectVariables(
    listOf(collection.variable).map((one) => [
      asText(field(one, 'key') ?? field(one, 'id')),
      asText(field(one, 'value')),
    ]),
  );
  const findings: Finding[] = [];
  const add = (at: string, message: string) => findings.push({ at, message });
  const requests = requestsIn(collection.item, { tags: [], auth: collection.auth, at: 'item', add });
  const title = asText(field(collection.info, 'name'));
  const description = readDescriptionText(field(collection.info, 'description'));
  return describeRequests(requests, { format: 'Postman', version: '', title, description, variables }, findings);
}

type Folder = { tags: readonly string[]; auth: unknown; at: string; add: (at: string, message: string) => void };

function requestsIn(items: unknown, folder: Folder): DescribedRequest[] {
  if (folder.tags.length > deepestFolder) {
    folder.add(folder.at, `is nested in more than ${deepestFolder} folders; left out`);
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
    const target = typeof request === 'string' ? request : field(request, 'url');
    const query = readPairs(field(target, 'query'));
    const url = urlOf(target, query);
    if (url === '') {
      folder.add(at, 'is not a request with a URL; left out');
      return [];
    }
    const own = field(request, 'auth') ?? auth;
    const headers = readPairs(field(request, 'header'));
    return [
      {
        name,
        description: readDescriptionText(field(request, 'description')),
        tags: folder.tags.slice(0, 1),
        method: (asText(field(request, 'method')) || 'GET').toUpperCase(),
        url,
        headers: listSentHeaders(headers),
        body: bodyOf(field(request, 'body'), listSentHeaders(headers)),
        auth: authOf(own),
        inputs: [
          ...toDescribedInputs('path', readPairs(field(target, 'variable'))),
          ...toDescribedInputs('query', query),
          ...toDescribedInputs('header', headers),
        ],
        at,
      },
    ];
  });
}

/**
 * Returns the URL of a request. Disabled pairs are missing in the raw text but are optional inputs, so they are added.
 */
function urlOf(url: unknown, query: readonly CollectionPair[]): string {
  if (typeof url === 'string') return url;
  const raw = asText(field(url, 'raw')) || withoutRaw(url);
  return raw === '' ? '' : addQuery(raw, query);
}

/** Builds the text of a URL that is stored only as parts. */
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
  return `${address}/${texts(field(url, 'path'), '/').replace(/^\/+/, '')}`;
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

function bodyOf(body: unknown, headers: readonly [string, string][]): RequestBody | undefined {
  const mode = asText(field(body, 'mode'));
  const given = headers.find(([name]) => /^content-type$/i.test(name))?.[1].trim();
  if (mode === 'urlencoded' || mode === 'formdata') {
    const mediaType = mode === 'formdata' ? 'multipart/form-data' : 'application/x-www-form-urlencoded';
    return { mediaType, fields: toFormFields(readPairs(field(body, mode))) };
  }
  if (mode === 'graphql') {
    const graphql = field(body, 'graphql');
    const text = (name: string) => asText(field(graphql, name));
    return makeGraphqlBody(text('query'), text('variables'), text('operationName'));
  }
  if (mode === 'file') return { mediaType: given || 'application/octet-stream', text: '' };
  const language = asText(field(field(field(body, 'options'), 'raw'), 'language'));
  return mode === 'raw' ? readBodyText(given || languages.get(language), asText(field(body, 'raw'))) : undefined;
}

/** Media types by the language that a raw body is marked with. */
const languages: ReadonlyMap<string, string> = new Map(
  Object.entries({ json: 'application/json', xml: 'application/xml', html: 'text/html', text: 'text/plain' }),
);
