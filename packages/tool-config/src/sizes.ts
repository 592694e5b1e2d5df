import type { Problem } from '@toolhost/errors/errors';
import { somePlaceholder, someString } from './http/placeholders.ts';
import { maxHeaderLength } from './http/values.ts';
import { createUrlResolver, getInterpolatedValues, type ServerWide } from './server-wide.ts';
import type { Tool } from './tool.ts';
import { indexTools, selectTools, toViewTool, type View } from './view.ts';

type Variables = { [name: string]: { value: string } } | undefined;

/** Maximum characters that variables may insert into one tool field, the server headers, or a fixed argument. */
export const maxInterpolatedPerField = 65_536;
/** Maximum characters that variables may insert into a whole configuration, and its maximum number of placeholders. */
const maxInterpolated = { characters: 4 * 1024 * 1024, placeholders: 50_000 };

/** Returns the length of a text after interpolation of its variables. */
export function getInterpolatedLength(text: string, variables: Variables): number {
  let length = text.length;
  visitPlaceholders(text, variables, (valueLength, placeholderLength, count) => {
    if (valueLength !== undefined) length += (valueLength - placeholderLength) * count;
  });
  return length;
}

/** Returns the number of characters that variables insert into the strings of a value. */
export function countInsertedCharacters(value: unknown, variables: Variables): number {
  let sum = 0;
  visitPlaceholders(value, variables, (length = 0, _, count) => {
    sum += length * count;
  });
  return sum;
}

/**
 * Visits each distinct placeholder with the length of its value (undefined for a secret), its own length, and the
 * number of its occurrences.
 */
function visitPlaceholders(
  value: unknown,
  variables: Variables = {},
  visit: (valueLength: number | undefined, placeholderLength: number, count: number) => void,
): void {
  const visitPlaceholder = (name: string, placeholderLength: number, count: number) => {
    visit(Object.hasOwn(variables, name) ? variables[name]?.value.length : undefined, placeholderLength, count);
    return false;
  };
  someString(value, (text) => somePlaceholder(text, visitPlaceholder));
}

export function checkConfigLength(length: number, maxLength: number): string | undefined {
  return length > maxLength ? `has ${length} characters after {{NAME}} is replaced; allowed: ${maxLength}` : undefined;
}

/** Returns the problem of a value into which variables insert too much text. */
export function checkInterpolation(value: unknown, variables: Variables): string | undefined {
  const inserted = countInsertedCharacters(value, variables);
  if (inserted <= maxInterpolatedPerField) return undefined;
  return `variables insert ${inserted} characters; allowed: ${maxInterpolatedPerField}; use shorter values, or fewer {{NAME}}`;
}

/**
 * Returns the headers that are too long after interpolation, each by itself or all together. Paths are `headers` and
 * below.
 */
export function findHeaderLengthProblems(headers: Record<string, string> = {}, variables: Variables): Problem[] {
  const headerProblems = Object.entries(headers).flatMap(([name, value]) =>
    toSizeProblems(`headers.${name}`, checkConfigLength(getInterpolatedLength(value, variables), maxHeaderLength)),
  );
  return headerProblems.length > 0 ? headerProblems : toSizeProblems('headers', checkInterpolation(headers, variables));
}

export function toSizeProblems(path: string, message: string | undefined): Problem[] {
  return message === undefined ? [] : [{ path, message }];
}

/** Amount of text that variables insert into a whole configuration. */
export type InterpolationSize = {
  /** Characters of the tool URLs before interpolation. */
  urls: number;
  /** Characters inserted into the tool URLs. `base_url` counts once per URL. */
  inUrls: number;
  /** Characters inserted everywhere else. */
  elsewhere: number;
  placeholders: number;
};

/** Returns the problem of a configuration whose interpolations are too large in total. */
export function checkTotalInterpolation({ inUrls, elsewhere, placeholders }: InterpolationSize): string | undefined {
  if (placeholders > maxInterpolated.placeholders)
    return `has ${placeholders} placeholders {{NAME}} in total; allowed: ${maxInterpolated.placeholders}`;
  const characters = inUrls + elsewhere;
  if (characters <= maxInterpolated.characters) return undefined;
  return `variables and base_url insert ${characters} characters in total; allowed: ${maxInterpolated.characters}; use shorter values, or fewer {{NAME}}`;
}

/** Compiled size of a value besides its characters: an object may be a schema, and an element an allowed value. */
const extraSizes = { object: 40, element: 8, characterOfPattern: 8 };
/** Size of a compiled tool, and of each server header that it includes. */
const compiledSizes = { tool: 500, sharedHeader: 2 };
/**
 * Additional size factor of a URL. It is compiled to a list of its parts, which takes five times as much memory as
 * other text.
 */
const extraUrlFactor = 4;

/** Returns the compiled size of a JSON value, in characters of about ten bytes. */
export function getValueSize(value: unknown): number {
  if (typeof value === 'string') return value.length + 3;
  if (typeof value !== 'object' || value === null) return 6;
  let size = 0;
  if (Array.isArray(value)) {
    for (const item of value) size += extraSizes.element + getValueSize(item);
    return size;
  }
  for (const [name, inner] of Object.entries(value)) {
    size += name.length + 4 + getValueSize(inner);
    if (name === 'pattern' && typeof inner === 'string') size += extraSizes.characterOfPattern * inner.length;
  }
  return extraSizes.object + size;
}

/** Returns the size of a compiled tool of this server besides its text. */
function getToolOverhead({ headers = {} }: { headers?: Record<string, string> | undefined }): number {
  return compiledSizes.tool + compiledSizes.sharedHeader * Object.keys(headers).length;
}

/** Fields of a configuration that determine its size. */
type SizedConfig = ServerWide & { tools: readonly Tool[]; views?: Record<string, View> | undefined };

/** Size of a view besides its tools, and the size of each tool in it: a list entry and a share for search terms. */
const viewCosts = { view: 500, tool: 30, textShare: 0.15 };
/** Maximum size that all compiled views of a server may retain. The largest tool fits in it. */
const maxViewsSize = 5_000_000;

/** Sizes of the compiled views of a server, in characters of about ten bytes. */
type ViewSizer = {
  /** Returns the size of a view without the tools that are compiled for it. */
  getViewSize(view: View): number;
  /** Returns the size of a tool that is compiled for a view because the view fixes some of its arguments. */
  getToolSize(tool: Tool): number;
  /** Returns the maximum size that all compiled views of the server may retain together. */
  getMaxRetainedSize(): number;
};

export function createViewSizer(config: SizedConfig): ViewSizer {
  const { views = {}, tools } = config;
  const resolveUrl = createUrlResolver(config);
  const index = indexTools(tools);
  const cachedSizes = new Map<Tool, number>();
  const getSize = (tool: Tool): number => {
    const size = cachedSizes.get(tool) ?? getValueSize(tool);
    cachedSizes.set(tool, size);
    return size;
  };
  const getToolSize = (tool: Tool) =>
    getSize(tool) + getToolOverhead(config) + (1 + extraUrlFactor) * resolveUrl(tool.url).length;
  const getViewSize = (view: View): number => {
    const sizes = selectTools(view, index).map(({ tool }) => viewCosts.tool + viewCosts.textShare * getSize(tool));
    return Math.ceil(sizes.reduce((sum, size) => sum + size, viewCosts.view));
  };
  return {
    getViewSize,
    getToolSize,
    getMaxRetainedSize() {
      let total = 0;
      for (const view of Object.values(views)) {
        total += getViewSize(view);
        for (const { tool, change } of selectTools(view, index)) if (change?.arguments) total += getToolSize(tool);
        if (total >= maxViewsSize) return maxViewsSize;
      }
      return total;
    },
  };
}

/** Maximum size of a configuration. A thousand tools with twenty described arguments each use half of it. */
const maxConfigSize = 12_000_000;

/** Returns the size of a compiled server with its views and interpolations. */
export function getCompiledSize(config: SizedConfig, { urls, inUrls, elsewhere }: InterpolationSize): number {
  const toolsSize = getValueSize(config) + getToolOverhead(config) * config.tools.length;
  const interpolatedSize = inUrls + extraUrlFactor * (urls + inUrls);
  // Tools of views that fix arguments share one copy of the interpolated text.
  const copies = config.views === undefined ? 1 : 2;
  return Math.ceil(toolsSize + interpolatedSize + copies * elsewhere + createViewSizer(config).getMaxRetainedSize());
}

/** Returns the reason why a configuration is too large when interpolated or compiled, or undefined. */
export function checkConfigSize(config: SizedConfig): string | undefined {
  const interpolation = measureInterpolation(config);
  const totalProblem = checkTotalInterpolation(interpolation);
  if (totalProblem !== undefined) return totalProblem;
  const size = getCompiledSize(config, interpolation);
  if (size <= maxConfigSize) return undefined;
  return `has a compiled size of ${size} characters: its text plus 500 per tool, 40 per object, 8 per array element, and 8 per character of a pattern; allowed: ${maxConfigSize}; split it into several servers`;
}

/** Returns the amount of text that variables insert into a configuration. */
export function measureInterpolation({
  base_url,
  headers,
  variables = {},
  tools,
  views = {},
}: SizedConfig): InterpolationSize {
  const interpolation: InterpolationSize = { urls: 0, inUrls: 0, elsewhere: 0, placeholders: 0 };
  const add = (value: unknown, where: 'inUrls' | 'elsewhere' = 'elsewhere') =>
    visitPlaceholders(value, variables, (length = 0, _, count) => {
      interpolation.placeholders += count;
      interpolation[where] += length * count;
    });
  const baseLength = base_url === undefined ? 0 : getInterpolatedLength(base_url, variables);
  add(base_url);
  add(headers);
  for (const tool of tools) {
    const [url, ...otherValues] = getInterpolatedValues(tool);
    add(url, 'inUrls');
    interpolation.urls += tool.url.length;
    // A variable may supply the slash at the beginning of such a URL.
    if (!/^[A-Za-z]/.test(tool.url)) interpolation.inUrls += baseLength;
    for (const value of otherValues) add(value);
  }
  for (const { tools: named = [] } of Object.values(views)) {
    for (const entry of named) add(toViewTool(entry).arguments);
  }
  return interpolation;
}
