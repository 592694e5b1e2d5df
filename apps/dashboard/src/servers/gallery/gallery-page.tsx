import { Badge, Box, Group, SimpleGrid, Text } from '@mantine/core';
import { Link, useSearchParams } from 'react-router';
import { type Config, getTools, isObject } from '../config.ts';
import { NewPage, NewServer } from '../new/new-server-page.tsx';

const galleryPath = '/servers/new/gallery';

/** Gallery of complete servers for public APIs, to start a new server from. */
export function GalleryPage() {
  const slug = useSearchParams()[0].get('example');
  const selected = galleryExamples.find((example) => example.slug === slug);
  if (selected)
    return (
      <NewPage
        title={`New server: ${selected.name}`}
        text="Nothing is stored until you create the server. Remove the tools you do not need."
        back={{ to: galleryPath, label: 'All examples' }}
      >
        <NewServer key={selected.slug} initial={selected.config} />
      </NewPage>
    );
  return (
    <NewPage
      title="Start from an example"
      text="Complete servers for public APIs. You can change everything before you create one."
    >
      <SimpleGrid className="th-card" cols={{ base: 1, sm: 2, lg: 3 }} spacing="md" p={{ base: 'md', sm: 'lg' }}>
        {galleryExamples.map((example) => (
          <ExampleCard key={example.slug} example={example} />
        ))}
      </SimpleGrid>
    </NewPage>
  );
}

function ExampleCard({ example: { slug, name, description, secrets, config } }: { example: GalleryExample }) {
  return (
    <Box component={Link} to={`${galleryPath}?example=${slug}`} className="th-card th-choice" p="lg">
      <Text fw={600}>{name}</Text>
      <Text size="sm" c="dimmed">
        {description}
      </Text>
      <Group gap="xs" mt="sm">
        <Badge variant="light">{getTools(config).length} tools</Badge>
        <Text size="xs" c="dimmed">
          {secrets.length > 0 ? `Requires ${secrets.join(', ')}` : 'No credential required'}
        </Text>
      </Group>
    </Box>
  );
}

/** Server of examples/gallery: its configuration and the names of the secrets it requires. */
type GalleryExample = { config: Config; slug: string; name: string; description: string; secrets: string[] };

/** Example files, read by the build. */
const files = import.meta.glob<{ default: Config }>('../../../../../examples/gallery/*.yaml', { eager: true });

const galleryExamples: readonly GalleryExample[] = Object.values(files)
  .map(({ default: { secrets, limits: _, ...config } }) => ({
    config,
    slug: String(config.slug),
    name: String(config.name),
    description: String(config.description),
    secrets: isObject(secrets) ? Object.keys(secrets) : [],
  }))
  .toSorted((a, b) => a.name.localeCompare(b.name));
