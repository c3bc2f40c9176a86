double area_of(double width, double height);

double area_of(double width, double height)
{
    return width * height;
}
