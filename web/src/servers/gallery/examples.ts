import { type Config, isObject } from '../config.ts';

/** A server of examples/gallery: its configuration, and the names of the secrets that it needs. */
export type GalleryExample = { config: Config; slug: string; name: string; description: string; secrets: string[] };

/** The files as the build reads them. */
const files = import.meta.glob<{ default: Config }>('../../../../examples/gallery/*.yaml', { eager: true });

export const galleryExamples: readonly GalleryExample[] = Object.values(files)
  .map(({ default: { secrets, limits: _, ...config } }) => ({
    config,
    slug: String(config.slug),
    name: String(config.name),
    description: String(config.description),
    secrets: isObject(secrets) ? Object.keys(secrets) : [],
  }))
  .toSorted((a, b) => a.name.localeCompare(b.name));
