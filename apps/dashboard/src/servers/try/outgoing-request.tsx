import { Alert, Box, Stack, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconAlertTriangle } from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { ApiProblem, api } from '../../api.ts';
import type { FieldProblem, JsonObject, Preview } from '../../api-types.ts';
import { parseJson } from '../../exact-json.ts';
import { CallCode } from '../../explore/call-code.tsx';
import { RequestView } from '../../ui/request-view.tsx';
import { Section } from '../../ui/section.tsx';
import { Loading } from '../../ui/states/loading.tsx';
import { getErrorMessage, toSentence } from '../../ui/states/problem-alert.tsx';
import { TextLink } from '../../ui/text/text-link.tsx';
import { recheckingMessage } from '../editor/model/findings.ts';

type PreviewInput = {
  slug: string;
  version: number;
  view: string | undefined;
  tool: string;
  values: JsonObject;
  isMissing: boolean;
};

/** Request for the arguments, or the reason why there is none. */
type Outcome = { preview: Preview } | { refusal: ApiProblem };

async function toOutcome(request: Promise<Preview>): Promise<Outcome> {
  try {
    return { preview: await request };
  } catch (error) {
    if (error instanceof ApiProblem && error.problems.length > 0) return { refusal: error };
    throw error;
  }
}

/** Previews the request for the arguments without sending it. `isStale` is true while the preview is an older one. */
export function usePreview({ slug, version, view, tool, values, isMissing }: PreviewInput) {
  const current = JSON.stringify(values);
  const [settled] = useDebouncedValue(current, 250);
  const { data, error, isFetching } = useQuery({
    queryKey: ['preview', slug, version, view, tool, settled],
    queryFn: ({ signal }) => {
      const body = { arguments: parseJson(settled) as JsonObject, view };
      return toOutcome(api('previewToolCall', { slug, tool, ...body }, { signal }));
    },
    // The previous outcome only reserves space for the next one.
    placeholderData: keepPreviousData,
    // Outdated arguments need no preview, and the service may reject them.
    enabled: !isMissing && settled === current,
    gcTime: 10_000,
  });
  const isStale = settled !== current || isFetching;
  const rejection = data && 'refusal' in data ? data.refusal : undefined;
  const problems: FieldProblem[] = (rejection?.problems ?? []).map(({ path: field, message }) => ({
    path: field,
    message: isStale ? recheckingMessage : message,
  }));
  return {
    request: data && 'preview' in data ? data.preview : undefined,
    failure: rejection ?? error ?? undefined,
    problems: isMissing ? [] : problems,
    isMissing,
    isStale,
  };
}

type Props = {
  preview: ReturnType<typeof usePreview>;
  slug: string;
  view: string | undefined;
  tool: string;
  args: JsonObject;
};

export function OutgoingRequest({ preview, slug, view, tool, args }: Props) {
  const { request, failure, isMissing, isStale } = preview;
  return (
    <Section
      title="Outgoing request"
      text="The request the API would receive. Credentials are masked, and nothing is sent yet."
    >
      {isMissing ? (
        <Text c="dimmed">Enter the required arguments to see the request.</Text>
      ) : (
        <Stack gap="xs">
          <Box style={{ visibility: isStale ? 'hidden' : 'visible' }} aria-busy={isStale} mih={120}>
            {failure && (
              <Text c="var(--th-bad)" role="status">
                {getErrorMessage(failure)}
              </Text>
            )}
            {!failure &&
              (request ? <RequestPreview preview={request} slug={slug} /> : <Loading rows={1} height={120} />)}
          </Box>
          <CallCode slug={slug} view={view} tool={tool} args={args} />
        </Stack>
      )}
    </Section>
  );
}

function RequestPreview({ preview: { refused, request, curl }, slug }: { preview: Preview; slug: string }) {
  return (
    <>
      {refused !== undefined && (
        <Alert color="red" icon={<IconAlertTriangle size={18} />} title="Request would not be sent" mb="sm">
          <Text>
            {toSentence(refused)}{' '}
            <TextLink to={`/servers/${slug}/settings/secrets`} underline="always">
              Secrets
            </TextLink>
          </Text>
        </Alert>
      )}
      <RequestView request={request} curl={curl} />
    </>
  );
}
