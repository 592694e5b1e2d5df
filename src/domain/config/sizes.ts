import type { Problem } from '../../errors.ts';
import { somePlaceholder, someText } from '../http/placeholders.ts';
import { mostHeaderLength } from '../http/values.ts';
import { filledValuesOf, type ServerWide, urlsBelow } from './server-wide.ts';
import type { Tool } from './tool.ts';
import { indexTools, toolsOfView, type View, viewToolOf } from './view.ts';

/** Size of a configuration after interpolation, computed without interpolating, and its size when compiled. */

type Variables = { [name: string]: { value: string } } | undefined;

/** Maximum characters that variables may insert into one tool field, the server headers, or a fixed argument. */
export const mostFilledOfField = 65_536;
/** Maximum characters that variables may insert into a whole configuration, and its maximum number of placeholders. */
const mostFilled = { characters: 4 * 1024 * 1024, placeholders: 50_000 };

/** Returns the length of a text after interpolation of its variables. */
export function filledLength(text: string, variables: Variables): number {
  let length = text.length;
  visitPlaceholders(text, variables, (value, placeholder, times) => {
    if (value !== undefined) length += (value - placeholder) * times;
  });
  return length;
}

/** Returns the number of characters that variables insert into the strings of a value. */
export function filledCharacters(value: unknown, variables: Variables): number {
  let sum = 0;
  visitPlaceholders(value, variables, (length = 0, _, times) => {
    sum += length * times;
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
  visit: (length: number | undefined, placeholder: number, times: number) => void,
): void {
  const note = (name: string, placeholder: number, times: number) => {
    visit(Object.hasOwn(variables, name) ? variables[name]?.value.length : undefined, placeholder, times);
    return false;
  };
  someText(value, (text) => somePlaceholder(text, note));
}

export function lengthProblem(length: number, most: number): string | undefined {
  return length > most ? `has ${length} characters after {{NAME}} is replaced; allowed: ${most}` : undefined;
}

/** Returns the problem of a value into which variables insert too much text. */
export function fillingProblem(value: unknown, variables: Variables): string | undefined {
  const filled = filledCharacters(value, variables);
  if (filled <= mostFilledOfField) return undefined;
  return `variables insert ${filled} characters; allowed: ${mostFilledOfField}; use shorter values, or fewer {{NAME}}`;
}

/**
 * Returns the headers that are too long after interpolation, each by itself or all together. Paths are `headers` and
 * below.
 */
export function filledHeaderProblems(headers: Record<string, string> = {}, variables: Variables): Problem[] {
  const single = Object.entries(headers).flatMap(([name, value]) =>
    problemAt(`headers.${name}`, lengthProblem(filledLength(value, variables), mostHeaderLength)),
  );
  return single.length > 0 ? single : problemAt('headers', fillingProblem(headers, variables));
}

export function problemAt(path: string, message: string | undefined): Problem[] {
  return message === undefined ? [] : [{ path, message }];
}

/** Amount of text that variables insert into a whole configuration. */
export type Filling = {
  /** Characters of the tool URLs before interpolation. */
  urls: number;
  /** Characters inserted into the tool URLs. `base_url` counts once per URL. */
  inUrls: number;
  /** Characters inserted everywhere else. */
  elsewhere: number;
  placeholders: number;
};

/** Returns the problem of a configuration whose interpolations are too large in total. */
export function wholeFillingProblem({ inUrls, elsewhere, placeholders }: Filling): string | undefined {
  if (placeholders > mostFilled.placeholders)
    return `has ${placeholders} placeholders {{NAME}} in total; allowed: ${mostFilled.placeholders}`;
  const characters = inUrls + elsewhere;
  if (characters <= mostFilled.characters) return undefined;
  return `variables and base_url insert ${characters} characters in total; allowed: ${mostFilled.characters}; use shorter values, or fewer {{NAME}}`;
}

/** Size of a value besides its characters. An object may be a schema, and an element an allowed value. */
const moreOf = { object: 40, element: 8, characterOfPattern: 8 };
/** Size of a compiled tool, and of each server header that it includes. */
const countOf = { tool: 500, sharedHeader: 2 };
/**
 * Additional size factor of a URL. It is compiled to a list of its parts, which takes five times as much memory as
 * other text.
 */
const moreOfUrl = 4;

/** Returns the compiled size of a JSON value, in characters of about ten bytes. */
export function sizeOfValue(value: unknown): number {
  if (typeof value === 'string') return value.length + 3;
  if (typeof value !== 'object' || value === null) return 6;
  let size = 0;
  if (Array.isArray(value)) {
    for (const item of value) size += moreOf.element + sizeOfValue(item);
    return size;
  }
  for (const [name, inner] of Object.entries(value)) {
    size += name.length + 4 + sizeOfValue(inner);
    if (name === 'pattern' && typeof inner === 'string') size += moreOf.characterOfPattern * inner.length;
  }
  return moreOf.object + size;
}

/** Returns the size of a compiled tool of this server besides its text. */
function ofEachTool({ headers = {} }: { headers?: Record<string, string> | undefined }): number {
  return countOf.tool + countOf.sharedHeader * Object.keys(headers).length;
}

/** Fields of a configuration that determine its size. */
type Sized = ServerWide & { tools: readonly Tool[]; views?: Record<string, View> | undefined };

/** Size of a view besides its tools, and for each tool: its list entry, or its search terms. */
const ofViews = { view: 500, tool: 30, partOfText: 0.15 };
/** Maximum size that all compiled views of a server may retain. The largest tool fits in it. */
const mostOfViews = 5_000_000;

/** Sizes of the compiled views of a server, in characters of about ten bytes. */
type ViewSizes = {
  /** Returns the size of a view without the tools that are compiled for it. */
  ofView(view: View): number;
  /** Returns the size of a tool that is compiled for a view because the view fixes some of its arguments. */
  ofTool(tool: Tool): number;
  /** Returns the maximum size that all compiled views of the server may retain together. */
  room(): number;
};

export function viewSizes(config: Sized): ViewSizes {
  const { views = {}, tools } = config;
  const urlOf = urlsBelow(config);
  const index = indexTools(tools);
  const known = new Map<Tool, number>();
  const sizeOf = (tool: Tool): number => {
    const size = known.get(tool) ?? sizeOfValue(tool);
    known.set(tool, size);
    return size;
  };
  const ofTool = (tool: Tool) => sizeOf(tool) + ofEachTool(config) + (1 + moreOfUrl) * urlOf(tool.url).length;
  const ofView = (view: View): number => {
    const sizes = toolsOfView(view, index).map(({ tool }) => ofViews.tool + ofViews.partOfText * sizeOf(tool));
    return Math.ceil(sizes.reduce((sum, size) => sum + size, ofViews.view));
  };
  return {
    ofView,
    ofTool,
    room() {
      let room = 0;
      for (const view of Object.values(views)) {
        room += ofView(view);
        for (const { tool, change } of toolsOfView(view, index)) if (change?.arguments) room += ofTool(tool);
        if (room >= mostOfViews) return mostOfViews;
      }
      return room;
    },
  };
}

/** Maximum size of a configuration. A thousand tools with twenty described arguments each use half of it. */
const mostOfConfig = 12_000_000;

/** Returns the size of a compiled server with its views and interpolations. */
export function compiledSize(config: Sized, { urls, inUrls, elsewhere }: Filling): number {
  const ofTools = sizeOfValue(config) + ofEachTool(config) * config.tools.length;
  const filled = inUrls + moreOfUrl * (urls + inUrls);
  // Tools of views that fix arguments share one copy of the interpolated text.
  const copies = config.views === undefined ? 1 : 2;
  return Math.ceil(ofTools + filled + copies * elsewhere + viewSizes(config).room());
}

/** Returns why a configuration is too large when interpolated or compiled. */
export function tooLargeProblem(config: Sized): string | undefined {
  const filling = fillingOf(config);
  const tooMuch = wholeFillingProblem(filling);
  if (tooMuch !== undefined) return tooMuch;
  const size = compiledSize(config, filling);
  if (size <= mostOfConfig) return undefined;
  return `has a compiled size of ${size} characters: its text plus 500 per tool, 40 per object, 8 per array element, and 8 per character of a pattern; allowed: ${mostOfConfig}; split it into several servers`;
}

/** Returns the amount of text that variables insert into a configuration. */
export function fillingOf({ base_url, headers, variables = {}, tools, views = {} }: Sized): Filling {
  const filling: Filling = { urls: 0, inUrls: 0, elsewhere: 0, placeholders: 0 };
  const add = (value: unknown, where: 'inUrls' | 'elsewhere' = 'elsewhere') =>
    visitPlaceholders(value, variables, (length = 0, _, times) => {
      filling.placeholders += times;
      filling[where] += length * times;
    });
  const base = base_url === undefined ? 0 : filledLength(base_url, variables);
  add(base_url);
  add(headers);
  for (const tool of tools) {
    const [url, ...others] = filledValuesOf(tool);
    add(url, 'inUrls');
    filling.urls += tool.url.length;
    // A variable may supply the slash at the beginning of such a URL.
    if (!/^[A-Za-z]/.test(tool.url)) filling.inUrls += base;
    for (const value of others) add(value);
  }
  for (const { tools: named = [] } of Object.values(views)) {
    for (const entry of named) add(viewToolOf(entry).arguments);
  }
  return filling;
}
