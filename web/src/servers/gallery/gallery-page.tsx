import { Anchor, Badge, Box, Group, SimpleGrid, Text } from '@mantine/core';
import { Link, useSearchParams } from 'react-router';
import { useCanEdit } from '../../frame/session.ts';
import { PageHeader } from '../../ui/page-header.tsx';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { type Config, isObject } from '../config.ts';
import { NewServer } from '../new/new-server-page.tsx';

const here = '/servers/new/gallery';

/** Complete servers for public APIs, each the beginning of a new server. */
export function GalleryPage() {
  const slug = useSearchParams()[0].get('example');
  const chosen = galleryExamples.find((example) => example.slug === slug);
  const canEdit = useCanEdit();
  return (
    <>
      <PageHeader
        title={chosen ? `New server: ${chosen.name}` : 'Start from an example'}
        text={
          chosen
            ? 'Nothing is stored before you create it. Remove the tools that you do not need.'
            : 'Complete servers for public APIs; everything can be changed before they are created.'
        }
        above={
          <Anchor component={Link} to={chosen ? here : '/servers/new'} size="sm" c="dimmed">
            {chosen ? 'All examples' : 'Begin in another way'}
          </Anchor>
        }
      />
      {!canEdit ? (
        <ViewerNote>Only editors and owners make servers.</ViewerNote>
      ) : chosen ? (
        <NewServer key={chosen.slug} initial={chosen.config} />
      ) : (
        <div className="th-card">
          <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="md" p={{ base: 'md', sm: 'lg' }}>
            {galleryExamples.map((example) => (
              <ExampleCard key={example.slug} example={example} />
            ))}
          </SimpleGrid>
        </div>
      )}
    </>
  );
}

function ExampleCard({ example: { slug, name, description, secrets, config } }: { example: GalleryExample }) {
  const tools = Array.isArray(config.tools) ? config.tools.length : 0;
  return (
    <Box component={Link} to={`${here}?example=${slug}`} className="th-card th-choice" p="lg">
      <Text fw={600}>{name}</Text>
      <Text size="sm" c="dimmed">
        {description}
      </Text>
      <Group gap="xs" mt="sm">
        <Badge variant="light">{tools} tools</Badge>
        <Text size="xs" c="dimmed">
          {secrets.length > 0 ? `Needs ${secrets.join(', ')}` : 'Needs no credential'}
        </Text>
      </Group>
    </Box>
  );
}

/** A server of examples/gallery: its configuration, and the names of the secrets that it needs. */
type GalleryExample = { config: Config; slug: string; name: string; description: string; secrets: string[] };

/** The files as the build reads them. */
const files = import.meta.glob<{ default: Config }>('../../../../examples/gallery/*.yaml', { eager: true });

const galleryExamples: readonly GalleryExample[] = Object.values(files)
  .map(({ default: { secrets, limits: _, ...config } }) => ({
    config,
    slug: String(config.slug),
    name: String(config.name),
    description: String(config.description),
    secrets: isObject(secrets) ? Object.keys(secrets) : [],
  }))
  .toSorted((a, b) => a.name.localeCompare(b.name));
