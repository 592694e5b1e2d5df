import type { GalleryExample } from './case.ts';

const oslo = { latitude: 59.91, longitude: 10.75 };

/** Responses as documented at open-meteo.com/en/docs. */
const openMeteo: GalleryExample = {
  name: 'open-meteo',
  origins: ['geocoding-api', 'api', 'archive-api', 'air-quality-api'].map((host) => `https://${host}.open-meteo.com`),
  env: {},
  headers: {},
  cases: [
    {
      call: ['find_location', { name: 'São Paulo', count: 1 }],
      request: 'GET /v1/search?name=S%C3%A3o%20Paulo&count=1',
      response: {
        results: [
          {
            id: 3448439,
            name: 'São Paulo',
            latitude: -23.5475,
            longitude: -46.63611,
            country: 'Brazil',
            feature_code: 'PPLA',
          },
        ],
        generationtime_ms: 0.5,
      },
      result: { results: [{ name: 'São Paulo', latitude: -23.5475, longitude: -46.63611, country: 'Brazil' }] },
    },
    {
      call: ['get_forecast', oslo],
      request:
        'GET /v1/forecast?latitude=59.91&longitude=10.75&forecast_days=3&timezone=auto&current=temperature_2m,apparent_temperature,relative_humidity_2m,precipitation,weather_code,wind_speed_10m&daily=weather_code,temperature_2m_max,temperature_2m_min,precipitation_sum,precipitation_probability_max,wind_speed_10m_max',
      response: {
        latitude: 59.9,
        timezone: 'Europe/Oslo',
        elevation: 9,
        current: { temperature_2m: 3.1 },
        daily: { time: [] },
      },
      result: { timezone: 'Europe/Oslo', current: { temperature_2m: 3.1 }, daily: { time: [] } },
    },
    {
      call: ['get_past_weather', { ...oslo, start_date: '2024-07-01', end_date: '2024-07-02' }],
      request:
        'GET /v1/archive?latitude=59.91&longitude=10.75&start_date=2024-07-01&end_date=2024-07-02&timezone=auto&daily=temperature_2m_max,temperature_2m_min,precipitation_sum,wind_speed_10m_max',
      response: { timezone: 'Europe/Oslo', daily: { time: ['2024-07-01', '2024-07-02'], precipitation_sum: [0, 1.1] } },
    },
    {
      call: ['get_air_quality', oslo],
      request:
        'GET /v1/air-quality?latitude=59.91&longitude=10.75&timezone=auto&current=european_aqi,pm10,pm2_5,ozone,nitrogen_dioxide,birch_pollen,grass_pollen',
      response: { current_units: { pm10: 'μg/m³' }, current: { pm10: 12.5 }, utc_offset_seconds: 3600 },
      result: { current_units: { pm10: 'μg/m³' }, current: { pm10: 12.5 } },
    },
  ],
};

/** Responses as documented in the API portal of Wikimedia. */
const wikipedia: GalleryExample = {
  name: 'wikipedia',
  origins: ['https://{{language}}.wikipedia.org'],
  env: {},
  headers: {},
  cases: [
    {
      call: ['search_articles', { q: 'earth & moon', limit: 1 }],
      request: 'GET /w/rest.php/v1/search/page?q=earth%20%26%20moon&limit=1',
      response: {
        pages: [
          { id: 9228, key: 'Earth', title: 'Earth', excerpt: 'Third planet', description: 'planet', thumbnail: null },
        ],
      },
      result: { pages: [{ key: 'Earth', title: 'Earth', excerpt: 'Third planet', description: 'planet' }] },
    },
    {
      call: ['get_summary', { title: 'AC/DC' }],
      request: 'GET /api/rest_v1/page/summary/AC%2FDC',
      response: {
        type: 'standard',
        title: 'AC/DC',
        description: 'Australian rock band',
        extract: 'AC/DC are a rock band.',
        content_urls: { desktop: { page: 'https://en.wikipedia.org/wiki/AC/DC', edit: 'x' } },
      },
      result: {
        title: 'AC/DC',
        description: 'Australian rock band',
        extract: 'AC/DC are a rock band.',
        content_urls: { desktop: { page: 'https://en.wikipedia.org/wiki/AC/DC' } },
      },
    },
    {
      call: ['read_article', { titles: 'Earth' }],
      request:
        'GET /w/api.php?titles=Earth&action=query&prop=extracts&explaintext=1&redirects=1&format=json&formatversion=2',
      response: {
        batchcomplete: true,
        query: { pages: [{ pageid: 9228, ns: 0, title: 'Earth', extract: 'Earth is …' }] },
      },
      result: { title: 'Earth', extract: 'Earth is …' },
    },
    {
      call: ['list_languages', { title: 'Earth' }],
      request: 'GET /w/rest.php/v1/page/Earth/links/language',
      response: [{ code: 'de', name: 'Deutsch', key: 'Erde', title: 'Erde' }],
      result: [{ code: 'de', name: 'Deutsch', title: 'Erde' }],
    },
  ],
};

const task = { id: 7, title: 'Dig', status: 'todo', due_date: '2026-02-01' };
const stored = { prefer: 'return=representation' };

/** Responses as PostgREST returns them. */
const supabase: GalleryExample = {
  name: 'supabase',
  origins: ['https://{{project}}.supabase.co'],
  env: { SUPABASE_KEY: 'anon-key-example' },
  headers: { apikey: 'anon-key-example', authorization: 'Bearer anon-key-example' },
  cases: [
    {
      call: ['list_tasks', { status: 'todo', words: 'dig a' }],
      request:
        'GET /rest/v1/tasks?status=eq.todo&title=ilike.*dig%20a*&select=id%2Ctitle%2Cstatus%2Cdue_date&order=due_date.asc.nullslast&limit=20',
      headers: { prefer: 'count=exact' },
      response: [task],
      responseHeaders: { 'content-range': '0-0/1' },
    },
    {
      call: ['get_task', { id: 7 }],
      request: 'GET /rest/v1/tasks?id=eq.7',
      headers: { accept: 'application/vnd.pgrst.object+json' },
      response: task,
      responseHeaders: { 'content-type': 'application/vnd.pgrst.object+json; charset=utf-8' },
    },
    {
      call: ['create_task', { title: 'Dig', due_date: '2026-02-01' }],
      request: 'POST /rest/v1/tasks',
      headers: stored,
      body: { title: 'Dig', due_date: '2026-02-01' },
      response: [task],
      result: task,
    },
    {
      call: ['update_task', { id: 7, status: 'done' }],
      request: 'PATCH /rest/v1/tasks?id=eq.7',
      headers: stored,
      body: { status: 'done' },
      response: [{ ...task, status: 'done' }],
      result: { ...task, status: 'done' },
    },
    {
      call: ['delete_task', { id: 7 }],
      request: 'DELETE /rest/v1/tasks?id=eq.7',
      headers: stored,
      response: [task],
      result: task,
    },
  ],
};

export const openExamples = [openMeteo, wikipedia, supabase];
