import type { ApiOperation } from '../model.ts';

/** Returns the path and the method as FastAPI appends them to the name of a function to create the operation ID. */
export function getFastApiSuffix({ path, method }: Pick<ApiOperation, 'path' | 'method'>): string {
  return `${path.replaceAll(/\W/g, '_')}_${method.toLowerCase()}`;
}
