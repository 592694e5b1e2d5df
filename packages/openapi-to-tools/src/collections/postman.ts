import { getField, isFields, type JsonFields, toList, toText } from '../document/lenient.ts';
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
import { createGraphqlBody, type RequestBody, readBodyText } from './request-bodies.ts';

/** Returns true for a collection, also as the Postman API returns it: inside `collection`. */
export function isPostman(root: unknown): root is JsonFields {
  const collection = getCollection(root);
  return isFields(collection) && Array.isArray(collection.item) && isFields(collection.info);
}

function getCollection(root: unknown): unknown {
  return getField(root, 'collection') ?? root;
}

const maxFolderDepth = 20;

/** Reads a Postman collection of format 2.0 or 2.1. */
export function readPostman(root: JsonFields): ApiDescription {
  const collection = getCollection(root) as JsonFields;
  const variables = collectVariables(
    toList(collection.variable).map((variable) => [
      toText(getField(variable, 'key') ?? getField(variable, 'id')),
      toText(getField(variable, 'value')),
    ]),
  );
  const findings: Finding[] = [];
  const addFinding = (at: string, message: string) => findings.push({ at, message });
  const requests = readRequests(collection.item, { tags: [], auth: collection.auth, at: 'item', addFinding });
  const title = toText(getField(collection.info, 'name'));
  const description = readDescriptionText(getField(collection.info, 'description'));
  return describeRequests(requests, { format: 'Postman', version: '', title, description, variables }, findings);
}

/** Folder with the names of the enclosing folders in `tags`. */
type Folder = { tags: readonly string[]; auth: unknown; at: string; addFinding: (at: string, message: string) => void };

function readRequests(items: unknown, folder: Folder): DescribedRequest[] {
  if (folder.tags.length > maxFolderDepth) {
    folder.addFinding(folder.at, `is nested in more than ${maxFolderDepth} folders; left out`);
    return [];
  }
  return toList(items).flatMap((item, index): DescribedRequest[] => {
    const at = `${folder.at}[${index}]`;
    const name = toText(getField(item, 'name'));
    const auth = getField(item, 'auth') ?? folder.auth;
    const inner = getField(item, 'item');
    if (Array.isArray(inner))
      return readRequests(inner, { ...folder, tags: [...folder.tags, name], auth, at: `${at}.item` });
    const request = getField(item, 'request');
    const target = typeof request === 'string' ? request : getField(request, 'url');
    const query = readPairs(getField(target, 'query'));
    const url = getUrl(target, query);
    if (url === '') {
      folder.addFinding(at, 'is not a request with a URL; left out');
      return [];
    }
    const requestAuth = getField(request, 'auth') ?? auth;
    const headers = readPairs(getField(request, 'header'));
    return [
      {
        name,
        description: readDescriptionText(getField(request, 'description')),
        tags: folder.tags.slice(0, 1),
        method: (toText(getField(request, 'method')) || 'GET').toUpperCase(),
        url,
        headers: listSentHeaders(headers),
        body: readBody(getField(request, 'body'), listSentHeaders(headers)),
        auth: readAuth(requestAuth),
        inputs: [
          ...toDescribedInputs('path', readPairs(getField(target, 'variable'))),
          ...toDescribedInputs('query', query),
          ...toDescribedInputs('header', headers),
        ],
        at,
      },
    ];
  });
}

/** Returns the URL of a request. The raw text lacks disabled pairs, which are optional inputs and therefore added. */
function getUrl(url: unknown, query: readonly CollectionPair[]): string {
  if (typeof url === 'string') return url;
  const raw = toText(getField(url, 'raw')) || buildUrl(url);
  return raw === '' ? '' : addQuery(raw, query);
}

/** Builds the text of a URL that is stored only as parts. */
function buildUrl(url: unknown): string {
  const joinParts = (value: unknown, separator: string) =>
    Array.isArray(value)
      ? value.map((part) => toText(getField(part, 'value')) || toText(part)).join(separator)
      : toText(value);
  const hostText = joinParts(getField(url, 'host'), '.');
  if (hostText === '') return '';
  const protocol = toText(getField(url, 'protocol'));
  const port = toText(getField(url, 'port'));
  const address = `${protocol === '' ? '' : `${protocol.replace(/(?<!\/)\/+$/, '').replace(/:$/, '')}://`}${hostText}${port === '' ? '' : `:${port}`}`;
  return `${address}/${joinParts(getField(url, 'path'), '/').replace(/^\/+/, '')}`;
}

function readAuth(auth: unknown): DescribedRequest['auth'] {
  const type = toText(getField(auth, 'type'));
  if (type === 'apikey') return readApiKey(auth);
  if (type === 'basic') return 'basic';
  if (type === 'bearer' || type === 'oauth2' || type === 'jwt') return 'bearer';
  if (type === 'awsv4')
    return { region: getAuthValue(auth, type, 'region'), service: getAuthValue(auth, type, 'service') };
  return type === '' || type === 'noauth' ? undefined : { unsupported: type };
}

function getAuthValue(auth: unknown, type: string, key: string): string {
  const entries = getField(auth, type);
  if (isFields(entries)) return toText(entries[key]);
  const entry = toList(entries).find((entry) => getField(entry, 'key') === key);
  return toText(getField(entry, 'value'));
}

function readApiKey(auth: unknown): { in: 'header' | 'query'; name: string } {
  const isQuery = getAuthValue(auth, 'apikey', 'in') === 'query';
  return {
    in: isQuery ? 'query' : 'header',
    name: getAuthValue(auth, 'apikey', 'key') || (isQuery ? 'api_key' : 'X-API-Key'),
  };
}

function readBody(body: unknown, headers: readonly [string, string][]): RequestBody | undefined {
  const mode = toText(getField(body, 'mode'));
  const contentType = headers.find(([name]) => /^content-type$/i.test(name))?.[1].trim();
  if (mode === 'urlencoded' || mode === 'formdata') {
    const mediaType = mode === 'formdata' ? 'multipart/form-data' : 'application/x-www-form-urlencoded';
    return { mediaType, fields: toFormFields(readPairs(getField(body, mode))) };
  }
  if (mode === 'graphql') {
    const graphql = getField(body, 'graphql');
    const getText = (name: string) => toText(getField(graphql, name));
    return createGraphqlBody(getText('query'), getText('variables'), getText('operationName'));
  }
  if (mode === 'file') return { mediaType: contentType || 'application/octet-stream', text: '' };
  const language = toText(getField(getField(getField(body, 'options'), 'raw'), 'language'));
  return mode === 'raw'
    ? readBodyText(contentType || languages.get(language), toText(getField(body, 'raw')))
    : undefined;
}

/** Media types by the language that a raw body is marked with. */
const languages: ReadonlyMap<string, string> = new Map(
  Object.entries({ json: 'application/json', xml: 'application/xml', html: 'text/html', text: 'text/plain' }),
);
