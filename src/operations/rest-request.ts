import { AppError } from '../errors.ts';
import type { Route } from './routes.ts';

/** A request to the REST API: `path` below `/api/v1` with its query, and the fields of its JSON body. */
export type RestRequest = { method: Route['method']; path: string; body: object | undefined };

/**
 * Builds a request from the input of an operation. Fields named in the path go there, all others into the query of a GET
 * or the body of any other method. @throws AppError notFound for a name that is empty or dots
 */
export function restRequest({ method, path }: Route, input: object): RestRequest {
  const rest = new Map(Object.entries(input).filter(([, value]) => value !== undefined));
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(rest.get(name));
    rest.delete(name);
    // URLs have no form for them: `..` would lead to another route.
    if (/^\.{0,2}$/.test(value)) throw new AppError('notFound', `there is no ${name} ${JSON.stringify(value)}`);
    return encodeURIComponent(value);
  });
  if (rest.size === 0) return { method, path: filled, body: undefined };
  if (method !== 'GET') return { method, path: filled, body: Object.fromEntries(rest) };
  const query = new URLSearchParams([...rest].map(([name, value]) => [name, String(value)]));
  return { method, path: `${filled}?${query}`, body: undefined };
}
