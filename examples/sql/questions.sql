-- Sixty everyday questions about the clinic of `discreet demo`. `python examples/sql/questions.py` asks all of them.

-- How many visits were there?
SELECT COUNT(*) AS visits FROM visits;

-- How many different patients came?
SELECT COUNT(DISTINCT patient_id) AS patients FROM visits;

-- Where do patients live?
SELECT city, COUNT(*) AS people FROM people GROUP BY city ORDER BY people DESC;

-- Which share of patients lives in each city?
SELECT city, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM people GROUP BY city;

-- Visits by month
SELECT date_trunc('month', day) AS month, COUNT(*) AS visits
FROM visits WHERE year(day) = 2025 GROUP BY month ORDER BY month;

-- Month over month
SELECT date_trunc('month', day) AS month, COUNT(*) AS visits,
       COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY date_trunc('month', day)) AS more
FROM visits WHERE year(day) = 2025 GROUP BY month ORDER BY month;

-- Running total of the year
SELECT month(day) AS month, SUM(COUNT(*)) OVER (ORDER BY month(day)) AS visits_so_far
FROM visits WHERE year(day) = 2025 GROUP BY month ORDER BY month;

-- Moving average of three months
SELECT month(day) AS month, AVG(COUNT(*)) OVER (ORDER BY month(day) ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS visits
FROM visits WHERE year(day) = 2025 GROUP BY month ORDER BY month;

-- What brings people to the clinic?
SELECT diagnosis, COUNT(*) AS visits FROM visits GROUP BY diagnosis ORDER BY visits DESC;

-- Share of each diagnosis
SELECT diagnosis, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM visits GROUP BY diagnosis;

-- Pareto: cumulative share of visits, the largest diagnosis first
SELECT diagnosis, 100.0 * SUM(COUNT(*)) OVER (ORDER BY COUNT(*) DESC) / SUM(COUNT(*)) OVER () AS percent
FROM visits GROUP BY diagnosis ORDER BY percent;

-- Top 3 diagnoses
SELECT diagnosis, COUNT(*) AS visits FROM visits GROUP BY diagnosis ORDER BY visits DESC LIMIT 3;

-- Average cost of a visit
SELECT AVG(cost) AS cost FROM visits;

-- Average cost by city
SELECT city, AVG(cost) AS cost FROM visits JOIN people USING (patient_id) GROUP BY city;

-- Total cost by quarter
SELECT quarter(day) AS quarter, SUM(cost) AS cost FROM visits WHERE year(day) = 2025 GROUP BY quarter ORDER BY quarter;

-- Median cost
SELECT MEDIAN(cost) AS cost FROM visits;

-- Median cost by city
SELECT city, MEDIAN(cost) AS cost FROM visits JOIN people USING (patient_id) GROUP BY city;

-- The dearest tenth of visits costs at least …
SELECT QUANTILE_CONT(cost, 0.9) AS cost FROM visits;

-- Quartiles of age
SELECT QUANTILE_CONT(age, 0.25) AS lower, MEDIAN(age) AS middle, QUANTILE_CONT(age, 0.75) AS upper FROM people;

-- How much do costs vary by city?
SELECT city, AVG(cost) AS cost, STDDEV(cost) AS deviation FROM visits JOIN people USING (patient_id) GROUP BY city;

-- Histogram of cost
SELECT FLOOR(cost / 250) * 250 AS at_least, COUNT(*) AS visits
FROM visits WHERE cost BETWEEN 0 AND 1999 GROUP BY at_least ORDER BY at_least;

-- Patients by decade of age
SELECT age // 10 * 10 AS decade, COUNT(*) AS people FROM people WHERE age BETWEEN 0 AND 99 GROUP BY decade ORDER BY decade;

-- Children, adults and seniors
SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'senior' END AS who, COUNT(*) AS people
FROM people GROUP BY who;

-- Which day of the week is busiest?
SELECT dayname(day) AS weekday, COUNT(*) AS visits FROM visits WHERE year(day) = 2025 GROUP BY weekday ORDER BY visits DESC;

-- Share of visits on weekends
SELECT 100.0 * COUNT_IF(dayofweek(day) IN (0, 6)) / COUNT(*) AS percent FROM visits;

-- Quarter by city
SELECT quarter(day) AS quarter, city, COUNT(*) AS visits
FROM visits JOIN people USING (patient_id) WHERE year(day) = 2025 GROUP BY quarter, city ORDER BY quarter, city;

-- Visits per patient
SELECT COUNT(*) * 1.0 / COUNT(DISTINCT patient_id) AS visits_per_patient FROM visits;

-- How many patients came once, twice, …?
SELECT times, COUNT(*) AS patients FROM (SELECT patient_id, COUNT(*) AS times FROM visits GROUP BY patient_id) AS each
WHERE times BETWEEN 1 AND 8 GROUP BY times ORDER BY times;

-- Frequent patients
SELECT COUNT(*) AS patients
FROM (SELECT patient_id FROM visits GROUP BY patient_id HAVING COUNT(*) >= 10) AS frequent;

-- Funnel: once, twice, three times, five times
SELECT COUNT(*) AS once, COUNT_IF(times >= 2) AS twice, COUNT_IF(times >= 3) AS thrice, COUNT_IF(times >= 5) AS five_times
FROM (SELECT patient_id, COUNT(*) AS times FROM visits GROUP BY patient_id) AS each;

-- New patients by month: the first visit
SELECT month(first_day) AS month, COUNT(*) AS new_patients
FROM (SELECT patient_id, MIN(day) AS first_day FROM visits WHERE year(day) = 2025 GROUP BY patient_id) AS firsts
WHERE first_day BETWEEN '2025-01-01' AND '2025-12-31' GROUP BY month ORDER BY month;

-- What do people come for first?
SELECT diagnosis, COUNT(*) AS patients
FROM (SELECT diagnosis FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day, visit_id) = 1) AS firsts
GROUP BY diagnosis ORDER BY patients DESC;

-- Days since the visit before
SELECT AVG(gap) AS days
FROM (SELECT day - LAG(day) OVER (PARTITION BY patient_id ORDER BY day, visit_id) AS gap FROM visits) AS gaps;

-- Share of visits that follow another one within 30 days
SELECT 100.0 * COUNT_IF(gap <= 30) / COUNT(*) AS percent
FROM (SELECT day - LAG(day) OVER (PARTITION BY patient_id ORDER BY day, visit_id) AS gap FROM visits) AS gaps;

-- Episodes: a new one begins after 60 days without a visit
SELECT COUNT_IF(gap IS NULL OR gap > 60) AS episodes
FROM (SELECT day - LAG(day) OVER (PARTITION BY patient_id ORDER BY day, visit_id) AS gap FROM visits) AS gaps;

-- Retention: of the patients of January, how many came in later months?
SELECT month(day) AS month, COUNT(DISTINCT patient_id) AS patients FROM visits
WHERE year(day) = 2025 AND patient_id IN (SELECT patient_id FROM visits WHERE day < '2025-02-01')
GROUP BY month ORDER BY month;

-- Cohorts: quarter of the first visit by quarter of activity
SELECT quarter(first_day) AS cohort, quarter(day) AS quarter, COUNT(DISTINCT patient_id) AS patients
FROM visits JOIN (SELECT patient_id, MIN(day) AS first_day FROM visits GROUP BY patient_id) AS firsts USING (patient_id)
WHERE year(day) = 2025 AND year(first_day) = 2025 GROUP BY cohort, quarter ORDER BY cohort, quarter;

-- Patients of the first half who did not come back in the second
SELECT COUNT(DISTINCT patient_id) AS lost FROM visits
WHERE day < '2025-07-01' AND patient_id NOT IN (SELECT patient_id FROM visits WHERE day >= '2025-07-01');

-- Registered, but never came
SELECT COUNT(*) AS people FROM people WHERE patient_id NOT IN (SELECT patient_id FROM visits);

-- Diabetes and hypertension
SELECT COUNT(*) AS people FROM people
WHERE patient_id IN (SELECT patient_id FROM visits WHERE diagnosis = 'diabetes')
  AND patient_id IN (SELECT patient_id FROM visits WHERE diagnosis = 'hypertension');

-- Asthma without influenza
SELECT COUNT(*) AS people FROM people p
WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND diagnosis = 'asthma')
  AND NOT EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND diagnosis = 'influenza');

-- Pneumonia after influenza
SELECT COUNT(DISTINCT patient_id) AS patients FROM visits v WHERE diagnosis = 'influenza' AND EXISTS (
  SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND w.diagnosis = 'pneumonia' AND w.day > v.day);

-- A/B: costs of seniors and of others
SELECT age >= 65 AS senior, AVG(cost) AS cost, COUNT(*) AS visits
FROM visits JOIN people USING (patient_id) GROUP BY senior;

-- Lift: how much more do seniors cost?
SELECT 100.0 * (AVG(cost) FILTER (WHERE age >= 65) / AVG(cost) FILTER (WHERE age < 65) - 1) AS percent_more
FROM visits JOIN people USING (patient_id);

-- Conversion: which share of patients had a visit above 1,000?
SELECT 100.0 * COUNT_IF(most > 1000) / COUNT(*) AS percent
FROM (SELECT patient_id, MAX(cost) AS most FROM visits GROUP BY patient_id) AS each;

-- Average age by diagnosis
SELECT diagnosis, AVG(age) AS age FROM visits JOIN people USING (patient_id) GROUP BY diagnosis;

-- Do costs depend on age?
SELECT CORR(age, cost) AS correlation FROM visits JOIN people USING (patient_id);

-- Spending per patient
SELECT AVG(spent) AS spent FROM (SELECT patient_id, SUM(cost) AS spent FROM visits GROUP BY patient_id) AS each;

-- Median spending per patient, which is between 0 and 20,000
SELECT MEDIAN(LEAST(GREATEST(spent, 0), 20000)) AS spent FROM (SELECT patient_id, SUM(cost) AS spent FROM visits GROUP BY patient_id) AS each;

-- Patients who spent more than 5,000
SELECT COUNT(*) AS patients
FROM (SELECT patient_id FROM visits GROUP BY patient_id HAVING SUM(cost) > 5000) AS large;

-- Share of all costs by city
SELECT city, 100.0 * SUM(cost) / SUM(SUM(cost)) OVER () AS percent
FROM visits JOIN people USING (patient_id) GROUP BY city ORDER BY percent DESC;

-- Different diagnoses of one patient
SELECT AVG(kinds) AS kinds
FROM (SELECT patient_id, COUNT(DISTINCT diagnosis) AS kinds FROM visits GROUP BY patient_id) AS each;

-- Different diagnoses in all
SELECT COUNT(DISTINCT diagnosis) AS kinds FROM visits;

-- The busiest month
SELECT month(day) AS month, COUNT(*) AS visits FROM visits WHERE year(day) = 2025
GROUP BY month ORDER BY visits DESC LIMIT 1;

-- The most common diagnosis of each city
SELECT city, diagnosis, COUNT(*) AS visits FROM visits JOIN people USING (patient_id) GROUP BY city, diagnosis
QUALIFY ROW_NUMBER() OVER (PARTITION BY city ORDER BY COUNT(*) DESC) = 1;

-- Cities with more than 5,000 patients
SELECT city, COUNT(*) AS people FROM people GROUP BY city HAVING COUNT(*) > 5000;

-- Visits that cost more than the average
SELECT COUNT(*) AS visits FROM visits WHERE cost > (SELECT AVG(cost) FROM visits);

-- Diagnoses in the two largest cities
SELECT diagnosis, COUNT(*) AS visits FROM visits JOIN people USING (patient_id)
WHERE city IN (SELECT city FROM people GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2) GROUP BY diagnosis;

-- Growth from the first half of the year to the second, by city
WITH early AS (SELECT city, COUNT(*) AS n FROM visits JOIN people USING (patient_id) WHERE day < '2025-07-01' GROUP BY city),
     late AS (SELECT city, COUNT(*) AS n FROM visits JOIN people USING (patient_id) WHERE day >= '2025-07-01' GROUP BY city)
SELECT early.city, 100.0 * (late.n - early.n) / early.n AS growth FROM early JOIN late ON early.city = late.city;

-- Before and after a date, by city
SELECT city, COUNT_IF(day < '2025-04-01') AS before, COUNT_IF(day >= '2025-04-01') AS after
FROM visits JOIN people USING (patient_id) GROUP BY city;
