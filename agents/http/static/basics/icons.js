// The few icons of the page, as paths on a 16×16 grid.

const PATHS = {
  host: "M2 3.5h12v3.500H2zM2 9h12v3.500H2zM4.200 5.250h.01M4.200 10.750h.01M7 5.250h4.500M7 10.750h4.500",
  node: "M2.500 3h11v7.500h-11zM6 13.500h4M8 10.500v3",
  pod: "M8 1.800l5.500 3.100v6.200L8 14.200l-5.500-3.100V4.900zM2.700 5L8 8l5.300-3M8 8v6",
  check: "M3 8.500l3.300 3.300L13 5",
  close: "M4 4l8 8M12 4l-8 8",
  back: "M9.500 3.500L5 8l4.500 4.500",
  sun: "M8 5a3 3 0 100 6 3 3 0 000-6zM8 1v1.500M8 13.500V15M1 8h1.500M13.500 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  moon: "M13 9.500A5.500 5.500 0 116.500 3a4.500 4.500 0 006.500 6.500z",
  auto: "M8 2a6 6 0 100 12A6 6 0 008 2zM8 3.500v9M9.800 3.700v8.600M11.600 4.700v6.600M13.200 6.500v3",
  octagon: "M5.300 1.800h5.400l3.500 3.500v5.400l-3.500 3.500H5.300l-3.500-3.500V5.300zM8 4.800v4M8 11.200h.01",
  racks: "M2 3h12v4H2zM2 9h12v4H2zM8 3.800v2.400M8 9.800v2.400",
  crown: "M2 12.500h12M2.500 10.500l-.700-6 3.700 2.700L8 2.500l2.500 4.700 3.700-2.700-.700 6z",
  crossed: "M8 2a6 6 0 100 12A6 6 0 008 2zM3.800 3.800l8.400 8.400",
  currency: "M8 2v12M11 4.500H6.700a1.800 1.800 0 000 3.500h2.600a1.800 1.800 0 010 3.500H4.800",
  pair: "M2.500 4.500h5v7h-5zM8.500 4.500h5v7h-5z",
  wave: "M2 10c2-4 4-4 6-1s4 2 6-2M11.500 6.500L14 7l-.500 2.500",
  tag: "M2.500 2.500h5.500l5.500 5.500-5.500 5.500-5.500-5.500zM5.300 5.300h.01",
  question: "M8 2a6 6 0 100 12A6 6 0 008 2zM6.300 6.200a1.800 1.800 0 113 1.500c-.800.500-1.300.800-1.300 1.600M8 11.500h.01",
  play: "M5 3.500v9l7-4.500z",
  earlier: "M4 3.500v9M12.500 3.500L7 8l5.500 4.500z",
  later: "M12 3.500v9M3.500 3.500L9 8l-5.500 4.500z",
  link: "M6.500 9.500l3-3M7.500 4.500l1.500-1.500a2.800 2.800 0 014 4l-1.500 1.500M8.500 11.500L7 13a2.800 2.800 0 01-4-4l1.500-1.500",
};

const SVG = "http://www.w3.org/2000/svg";

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "i");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name] ?? PATHS.question);
  svg.append(path);
  return svg;
}
